# SPDX-License-Identifier: BSD-2-Clause
"""Several tests of a runner at a time, each lane in a network namespace.

A lane is a forked child that takes one test after another from a common queue.
Its namespace has a loopback interface and nothing else: ports, boards and the
numbers of interfaces are the lane's own, as for the tests of test/alone.sh. The
parent starts no test; it prints the words of each in the order of the list and
adds up the counts. Each test runs once, in one lane.
"""
import contextlib
import ctypes
import fcntl
import io
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import traceback

PR_SET_PDEATHSIG = 1
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
NUMBER = struct.Struct("=H")


def lanes_here():
    """How many lanes: two a processor, as the tests sleep most of their time;
    one in all without namespaces."""
    done = subprocess.run(["unshare", "--net", "true"], check=False,
                          stderr=subprocess.DEVNULL)
    lanes = 2 * len(os.sched_getaffinity(0))
    return lanes if done.returncode == 0 else 1


def leave_network():
    """Enter a network namespace of our own, with a loopback interface."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace")
    with socket.socket() as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


def lane(queue, out, begin):
    """A lane's life. begin() gives (test(number), report, end())."""
    leave_network()
    test, report, end = begin()
    try:
        while True:
            head = os.read(queue, NUMBER.size)
            if not head:
                return
            number, = NUMBER.unpack(head)
            report.count = dict.fromkeys(report.count, 0)
            report.failed = []
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                test(number)
            line = json.dumps([number, text.getvalue(), report.count,
                               report.failed])
            out.write(line + "\n")
            out.flush()
    finally:
        end()


def start_lane(queue, begin):
    """(process, its words) of a new lane"""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read)
            with open(write, "w") as out:
                lane(queue, out, begin)
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    return pid, open(read)


def results(started):
    """Each line that a lane wrote, as it comes, until all lanes have ended."""
    with selectors.DefaultSelector() as ready:
        for _, words in started:
            ready.register(words, selectors.EVENT_READ)
        while ready.get_map():
            for key, _ in ready.select():
                # a lane writes whole lines
                line = key.fileobj.readline()
                if line.endswith("\n"):
                    yield json.loads(line)
                else:
                    ready.unregister(key.fileobj)
                    key.fileobj.close()


def in_lanes(lanes, names, first, begin, report):
    """Run the tests of these names; those whose numbers are in first go first.
    What a lane's report counted is added to report."""
    queue, write = os.pipe()
    order = sorted(range(len(names)), key=lambda n: n not in first)
    os.write(write, b"".join(map(NUMBER.pack, order)))
    os.close(write)
    started = [start_lane(queue, begin) for _ in range(lanes)]
    os.close(queue)
    texts, printed = {}, 0
    for number, text, count, failed in results(started):
        texts[number] = text
        report.failed += failed
        for kind in count:
            report.count[kind] += count[kind]
        while printed in texts:
            print(texts[printed], end="", flush=True)
            printed += 1
    codes = [os.waitpid(pid, 0)[1] for pid, _ in started]
    for number in range(printed, len(names)):
        print(texts.get(number, ""), end="", flush=True)
        if number not in texts:
            report.not_ok(names[number], "a lane ended before it: %s" % codes)
