# SPDX-License-Identifier: BSD-2-Clause
"""Several tests of a runner at a time, each lane in a network namespace.

A lane is a forked child that takes one test after another from a common queue.
Its namespace has a loopback interface and nothing else: ports, boards and the
numbers of interfaces are the lane's own, as for the tests of test/check/alone.sh. The
parent starts no test; it prints the output of each test in the order of the
list and adds up the counts. Each test runs once, in one lane.

A lane writes messages to the parent, one JSON array a line:
    ["begin", number]               it has taken this test
    ["said", text, count, failed]   the test's output, and what its report has
    ["end"]                         the test has ended, whatever its result
    ["why", text]                   the lane ends, for this reason
A test that has begun and has no end is lost with its lane, and has failed.
"""
import contextlib
import ctypes
import fcntl
import io
import json
import os
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

from lib_run import STOPS, become_reaper, end_by_finally, end_orphans

PR_SET_PDEATHSIG = 1
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
NUMBER = struct.Struct("=H")
MOST_LANES = 8
STOP_SECONDS = 5


def namespaces_here():
    """Whether this user can make a network namespace here."""
    return subprocess.run(["unshare", "--net", "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


def lanes_here():
    """How many lanes: two a processor, as the tests sleep most of their time;
    one in all without namespaces."""
    if not namespaces_here():
        return 1
    return min(MOST_LANES, 2 * len(os.sched_getaffinity(0)))


# --- in the lane ------------------------------------------------------------

def end_with(parent):
    """Get SIGTERM when the parent ends, and end now if it has ended before."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the runner has ended")


def leave_network():
    """Enter a network namespace of our own, with a loopback interface."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace")
    with socket.socket() as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


def send(out, *messages):
    try:
        out.write("".join(json.dumps(message) + "\n" for message in messages))
        out.flush()
    except BrokenPipeError:
        sys.exit("the runner has ended")


def run_tests(queue, out, begin, folder):
    """Run tests until the queue is empty. begin(folder) gives (test(number),
    report, end())."""
    test, report, end = begin(folder)
    try:
        while True:
            head = os.read(queue, NUMBER.size)
            if not head:
                return
            number, = NUMBER.unpack(head)
            send(out, ["begin", number])
            report.count = dict.fromkeys(report.count, 0)
            report.failed = []
            text, last = io.StringIO(), []
            try:
                with contextlib.redirect_stdout(text):
                    test(number)
                last = [["end"]]
            finally:
                send(out, ["said", text.getvalue(), report.count,
                           report.failed], *last)
    finally:
        end()


def reason(error):
    """One line for an exception that ends a lane."""
    if isinstance(error, SystemExit):
        # die() gives its words, a signal a number
        return (error.code if isinstance(error.code, str) else
                "exit %s" % error.code)
    traceback.print_exc()
    return traceback.format_exception_only(type(error), error)[-1].strip()


# --- in the parent ----------------------------------------------------------

class Lane:
    """The parent's view of a lane."""

    def __init__(self, number):
        self.number = number
        # its tests' files, made here: the parent removes it if a lane can not
        self.folder = tempfile.mkdtemp(prefix="unimem-test-", dir="/tmp")
        self.pid = None         # until it is waited for
        self.pipe = None        # where its messages come from
        self.rest = b""         # the start of a message
        self.test = None        # number of the test that it runs
        self.why = ""

    def start(self, queue, begin, lanes):
        """Fork. The signals of STOPS are blocked: one that arrives between
        fork() and try would run the parent's finally in the child."""
        self.pipe, write = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid != 0:
            os.close(write)
            return
        code = 1
        try:
            with open(write, "w") as out:
                try:
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
                    for lane in lanes:
                        lane.close()
                    end_with(parent)
                    leave_network()
                    run_tests(queue, out, begin, self.folder)
                    code = 0
                except BaseException as error:
                    send(out, ["why", reason(error)])
        finally:
            os._exit(code)

    def messages(self):
        """All whole messages that are there; None at the end of the pipe."""
        data = os.read(self.pipe, 1 << 16)
        if not data:
            return None
        *lines, self.rest = (self.rest + data).split(b"\n")
        return map(json.loads, lines)

    def close(self):
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None

    def wait(self):
        """Wait for the lane, which has ended or is about to; whether it did
        so by itself and without an error."""
        status = os.waitpid(self.pid, 0)[1]
        self.pid = None
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            self.why = "signal %d (%s)" % (-code, signal.strsignal(-code))
        elif code and not self.why:
            self.why = "exit %d" % code
        return code == 0

    def stop(self, limit):
        """End the lane, until the time limit by its own hand."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGTERM)
            while time.monotonic() < limit:
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    break
                time.sleep(0.01)
            else:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        self.pid = None


class Run:
    """The tests of one call of in_lanes() and what is known of each."""

    def __init__(self, names, report):
        self.names = names
        self.report = report
        self.lanes = []
        self.texts = [""] * len(names)
        self.ended = [False] * len(names)
        self.printed = 0        # the outputs of so many tests

    def start(self, lanes, queue, begin):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        try:
            for number in range(min(lanes, len(self.names))):
                self.lanes.append(Lane(number))
                self.lanes[-1].start(queue, begin, self.lanes)
        finally:
            os.close(queue)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def follow(self):
        """Take each message as it comes, until all lanes have ended."""
        with selectors.DefaultSelector() as ready:
            for lane in self.lanes:
                ready.register(lane.pipe, selectors.EVENT_READ, lane)
            while ready.get_map():
                for key, _ in ready.select():
                    messages = key.data.messages()
                    if messages is None:
                        ready.unregister(key.fd)
                        self.lane_ended(key.data)
                        continue
                    for kind, *more in messages:
                        getattr(self, "take_" + kind)(key.data, *more)
        for number, ended in enumerate(self.ended):
            if not ended:
                self.lost(number, "no lane was left for it: " + ", ".join(
                    "lane %d: %s" % (lane.number, lane.why)
                    for lane in self.lanes if lane.why))

    def take_begin(self, lane, number):
        lane.test = number

    def take_said(self, lane, text, count, failed):
        self.texts[lane.test] += text
        self.report.failed += failed
        for kind in count:
            self.report.count[kind] += count[kind]

    def take_end(self, lane):
        self.ended[lane.test] = True
        lane.test = None
        self.print_ended()

    @staticmethod
    def take_why(lane, text):
        lane.why = text

    def lost(self, number, why):
        """A test without an end has failed."""
        with contextlib.redirect_stdout(io.StringIO()) as text:
            self.report.not_ok(self.names[number], why)
        self.texts[number] += text.getvalue()
        self.ended[number] = True
        self.print_ended()

    def lane_ended(self, lane):
        lane.close()
        good = lane.wait()
        self.clean(lane)
        if lane.test is not None:
            self.lost(lane.test, "lane %d ended in it: %s" % (lane.number,
                                                              lane.why))
        elif not good:
            print("# lane %d ended early: %s" % (lane.number, lane.why),
                  flush=True)

    def clean(self, lane):
        """End and remove what a lane that has ended left. Its processes are
        our children now, beside the lanes."""
        end_orphans([other.pid for other in self.lanes])
        shutil.rmtree(lane.folder, ignore_errors=True)

    def print_ended(self):
        while (self.printed < len(self.names) and self.ended[self.printed]):
            print(self.texts[self.printed], end="", flush=True)
            self.printed += 1

    def close(self):
        """Print what is not printed, and end the lanes, if we are stopped."""
        left = self.ended.count(False)
        if left:
            print("".join(self.texts[self.printed:]), end="")
            print("# stopped: %d of %d tests have no result" % (
                left, len(self.names)), flush=True)
        limit = time.monotonic() + STOP_SECONDS
        for lane in self.lanes:
            lane.close()
            if lane.pid:
                lane.stop(limit)
        for lane in self.lanes:
            self.clean(lane)


def in_lanes(lanes, names, first, begin, report):
    """Run the tests of these names; those whose numbers are in first go first.
    The counts of each lane's report are added to report."""
    become_reaper()
    end_by_finally()
    queue, write = os.pipe()
    order = sorted(range(len(names)), key=lambda n: n not in first)
    os.write(write, b"".join(map(NUMBER.pack, order)))
    os.close(write)
    run = Run(names, report)
    try:
        run.start(lanes, queue, begin)
        run.follow()
    finally:
        run.close()
