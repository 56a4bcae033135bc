#!/usr/bin/python3 -BIS
# SPDX-License-Identifier: BSD-2-Clause
"""cuse_devices.py - the devices of unimem-mailbox-cuse, on a real kernel

The first program of a virtual machine (scripts/cuse.sh): it loads the kernel's
modules fuse and cuse, starts unimem-mailbox-cuse of two nodes, and uses their
devices by open, read, write, select, poll, epoll, dd and the shell. It prints
a line for each test and "N passed, N failed, N skipped", and ends the machine.
"""
import ctypes
import errno
import os
import select
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
import traceback

LIBC = ctypes.CDLL(None, use_errno=True)
PREFIX = os.environ.get("CUSE_PREFIX", "/usr")  # of the daemons
WAIT = 120000       # ms for an event that has to come, then the test fails
QUIET = 100         # ms without an event
NONE = (0, 0)


def need(condition, what):
    """Fail unless the condition is true."""
    if not condition:
        raise AssertionError(what)


def fails(number, call, *args):
    """The call has to fail with this errno."""
    try:
        call(*args)
    except OSError as error:
        need(error.errno == number, "%s, not %s" % (
            errno.errorcode[error.errno], errno.errorcode[number]))
        return
    need(False, "no error, %s expected" % errno.errorcode[number])


def message(opcode, number):
    """The bytes of a message."""
    return struct.pack("=Q", opcode << 60 | number)


def action(kind, opcode, val=0):
    """The bytes of a struct mailbox_action_t."""
    return struct.pack("@cIi", kind, opcode, val)


def local(flags=0):
    """The mailbox of node 0, opened by a process of node 0."""
    return os.open("/dev/Unimem/mailboxA", os.O_RDWR | flags)


def remote(flags=0):
    """The mailbox of node 0, opened by a process of node 1."""
    return os.open("/dev/Unimem1/mailboxA", os.O_WRONLY | flags)


def poll(fd, events, ms):
    """The events that poll(2) reports."""
    poller = select.poll()
    poller.register(fd, events)
    got = poller.poll(ms)
    return got[0][1] if got else 0


def child(run, *args):
    """Call a function in a forked child. Returns its process id."""
    pid = os.fork()
    if pid != 0:
        return pid
    code = 1
    try:
        run(*args)
        code = 0
    except BaseException:  # pylint: disable=broad-except
        traceback.print_exc()
    os._exit(code)


def ended(pid):
    """The wait status of a child."""
    return os.waitpid(pid, 0)[1]


def sleeps(pid):
    """Wait until a process sleeps in a FUSE request."""
    while True:
        with open("/proc/%d/wchan" % pid, encoding="ascii") as wchan:
            text = wchan.read()
        if "request_wait" in text or "fuse" in text:
            return
        time.sleep(0.01)


# ---- Tests ------------------------------------------------------------------

def test_devices_exist():
    """Each node has a character device, and no other has."""
    for name in "Unimem", "Unimem1":
        files = sorted(os.listdir("/dev/" + name))
        need(files == ["mailboxA", "mailboxB"], str(files))
        for file in files:
            mode = os.stat("/dev/%s/%s" % (name, file)).st_mode
            need(stat.S_ISCHR(mode), file)
            need(os.path.exists("/sys/class/cuse/%s!%s" % (name, file)),
                 "no %s in sysfs" % file)


def test_messages_in_order():
    """Messages arrive whole, and in order; a blocking read waits."""
    here, there = local(), remote()
    need(os.write(here, action(b"r", 6)) == 12, "register")
    for i in range(1000):
        if i % 100 == 0:
            for k in range(i, i + 100):
                need(os.write(there, message(6, k)) == 8, "write")
        need(os.read(here, 100) == message(6, i), "message %d" % i)
    pid = child(lambda: need(os.read(here, 8) == message(6, 5), "other"))
    sleeps(pid)
    os.write(there, message(6, 5))
    need(ended(pid) == 0, "reader")
    os.close(here)
    os.close(there)


def test_select_poll_epoll():
    """All three report a message, and wake when it comes while they sleep."""
    here, there = local(os.O_NONBLOCK), remote()
    os.write(here, action(b"r", 6))
    fails(errno.EAGAIN, os.read, here, 8)
    need(select.select([here], [], [], 0)[0] == [], "select too early")
    for mask in (select.POLLIN, select.POLLRDNORM):
        need(poll(here, mask, QUIET) == 0, "poll too early")
        os.write(there, message(6, 1))
        need(poll(here, mask, WAIT) == mask, "poll of %#x" % mask)
        need(poll(here, mask, 0) == mask, "poll again")
        os.read(here, 8)
    need(poll(there, select.POLLOUT, WAIT) == select.POLLOUT, "POLLOUT")
    need(poll(there, select.POLLWRNORM, WAIT) == select.POLLWRNORM, "WRNORM")
    edge = select.epoll()
    edge.register(here, select.EPOLLIN | select.EPOLLET)
    for waiter in (lambda: select.select([here], [], [], WAIT / 1000)[0],
                   lambda: poll(here, select.POLLRDNORM, WAIT),
                   lambda: edge.poll(WAIT / 1000)):
        timer = threading.Timer(0.2, os.write, (there, message(6, 2)))
        timer.start()
        need(waiter(), "no wake-up")
        timer.join()
        need(os.read(here, 8) == message(6, 2), "message")
        edge.poll(0)
        fails(errno.EAGAIN, os.read, here, 8)
    os.close(here)
    os.close(there)


def test_errors_of_writes():
    """A wrong write fails at once, and the file stays usable."""
    here, other, there = local(), local(), remote()
    for size in (0, 1, 4, 7, 8, 9, 11, 13, 16, 4096, 1 << 20):
        if size:
            fails(errno.EINVAL, os.write, here, bytes(size))
        if size not in (0, 8):
            fails(errno.EINVAL, os.write, there, bytes(size))
    fails(errno.EINVAL, os.write, here, action(b"x", 1))
    fails(errno.EINVAL, os.write, here, action(b"r", 16))
    fails(errno.EINVAL, os.write, here, action(b"r", 0xffffffff))
    fails(errno.EINVAL, os.write, here, action(b"s", 1, 0))
    fails(errno.EINVAL, os.write, here, action(b"s", 1, 65))
    fails(errno.EBADF, os.write, here, action(b"e", 1, 9999))
    fails(errno.EINVAL, os.write, here, action(b"e", 1, 0))
    fails(errno.ENOENT, os.write, here, action(b"u", 1))
    os.write(here, action(b"r", 1))
    fails(errno.EBUSY, os.write, here, action(b"r", 1))
    fails(errno.EBUSY, os.write, other, action(b"r", 1))
    fails(errno.ENOENT, os.write, other, action(b"u", 1))
    os.write(here, action(b"u", 1))
    os.write(other, action(b"r", 1))
    fails(errno.EINVAL, os.read, other, 7)
    os.write(there, message(1, 3))
    need(os.read(other, 8) == message(1, 3), "message after errors")
    for fd in (here, other, there):
        os.close(fd)


def test_close_unregisters():
    """The opcode is free after the last close; a child's copy counts."""
    here = local()
    os.write(here, action(b"r", 2))
    held, gate = os.pipe()
    pid = child(lambda: (os.close(gate), os.read(held, 1)))
    os.close(here)
    here = local()
    fails(errno.EBUSY, os.write, here, action(b"r", 2))
    os.close(gate)
    need(ended(pid) == 0, "child")
    end = time.monotonic() + WAIT / 1000
    while True:
        try:
            os.write(here, action(b"r", 2))
            break
        except OSError as error:
            need(error.errno == errno.EBUSY and time.monotonic() < end,
                 str(error))
            time.sleep(0.01)
    os.close(held)
    os.close(here)


def test_full():
    """A full mailbox refuses or blocks, and all messages arrive."""
    here, there, blocked = local(), remote(os.O_NONBLOCK), remote()
    sent = 0
    while poll(there, select.POLLOUT, QUIET):
        try:
            while True:
                os.write(there, message(9, sent))
                sent += 1
        except BlockingIOError:
            pass
    need(sent > 16, "only %d messages fit" % sent)

    def fill():
        for i in range(sent + 600):
            os.write(blocked, message(10, i))
    pid = child(fill)
    waiter = threading.Thread(target=poll, args=(there, select.POLLOUT, -1))
    waiter.start()
    os.write(here, action(b"r", 9))
    for i in range(sent):
        need(os.read(here, 8) == message(9, i), "message %d" % i)
    waiter.join()
    os.write(here, action(b"r", 10))
    for i in range(sent + 600):
        need(os.read(here, 8) == message(10, i), "blocked message %d" % i)
    need(ended(pid) == 0, "writer")
    for fd in (here, there, blocked):
        os.close(fd)


def test_interrupt():
    """A signal ends a blocked read with EINTR; SIGKILL ends its process."""
    here, there = local(), remote()
    os.write(here, action(b"r", 3))

    def interrupted():
        class Stop(Exception):
            """Raised by the handler, so that Python does not read again."""

        def handler(_signo, _frame):
            raise Stop
        signal.signal(signal.SIGUSR1, handler)
        try:
            os.read(here, 8)
        except Stop:
            return
        need(False, "not interrupted")
    pid = child(interrupted)
    sleeps(pid)
    os.kill(pid, signal.SIGUSR1)
    need(ended(pid) == 0, "interrupted reader")
    pid = child(os.read, here, 8)
    sleeps(pid)
    os.kill(pid, signal.SIGKILL)
    need(ended(pid) == signal.SIGKILL, "killed reader")
    os.write(there, message(3, 4))
    need(os.read(here, 8) == message(3, 4), "message for the next reader")
    os.close(here)
    os.close(there)


def test_two_readers():
    """Two processes wait on one file: each message ends one wait."""
    here, there = local(), remote()
    os.write(here, action(b"r", 3))

    def reader():
        os._exit(struct.unpack("=Q", os.read(here, 8))[0] & 0xff)
    pids = [child(reader), child(reader)]
    for pid in pids:
        sleeps(pid)
    os.write(there, message(3, 11))
    first, status = os.wait()
    need(status >> 8 == 11, "first reader: %#x" % status)
    pids.remove(first)
    time.sleep(QUIET / 1000)
    need(os.waitpid(pids[0], os.WNOHANG) == NONE, "the other has returned")
    os.write(there, message(3, 12))
    need(ended(pids[0]) >> 8 == 12, "second reader")
    os.close(here)
    os.close(there)


def test_signal_and_event_fd():
    """'s' and 'e' notify the process of the thread that wrote them."""
    here, there = local(), remote()
    event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])

    def register():
        os.write(here, action(b"s", 4, signal.SIGUSR2))
        os.write(here, action(b"e", 5, event))
    thread = threading.Thread(target=register)
    thread.start()
    thread.join()
    os.write(there, message(4, 1))
    need(signal.sigtimedwait([signal.SIGUSR2], WAIT / 1000), "no signal")
    for i in range(3):
        os.write(there, message(5, i))
    got = 0
    while got < 3:
        need(poll(event, select.POLLIN, WAIT), "no event: %d" % got)
        got += os.eventfd_read(event)
    need(got == 3, "%d events" % got)
    need(os.read(here, 8) == message(4, 1), "message of the signal")
    for i in range(3):
        need(os.read(here, 8) == message(5, i), "message of the event")
    blocking = os.eventfd(0, os.EFD_CLOEXEC)
    fails(errno.EINVAL, os.write, here, action(b"e", 6, blocking))
    for fd in (here, there, event, blocking):
        os.close(fd)


def test_shell_and_dd():
    """printf registers and sends, dd reads."""
    text = subprocess.run(
        ["/bin/sh", "-c", r"""
        exec 3<>/dev/Unimem/mailboxA
        printf 'r\0\0\0\7\0\0\0\0\0\0\0' >&3
        printf 'hello\0\0\160' >/dev/Unimem1/mailboxA
        exec dd bs=8 count=1 status=none <&3"""],
        check=True, stdout=subprocess.PIPE).stdout
    need(text == b"hello\0\0\160", repr(text))


def test_ordinary_user():
    """A user who has no permission is refused; with it, all works."""
    def user():
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        fails(errno.EACCES, os.open, "/dev/Unimem/mailboxB", os.O_RDWR)
        here, there = local(), remote()
        os.write(here, action(b"r", 8))
        os.write(there, message(8, 1))
        need(os.read(here, 8) == message(8, 1), "message")
    os.chmod("/dev/Unimem/mailboxA", 0o666)
    os.chmod("/dev/Unimem1/mailboxA", 0o666)
    need(ended(child(user)) == 0, "user")


def test_name_is_taken():
    """A second daemon of the same name ends, with a line."""
    with start(0, "Unimem") as daemon:
        need(daemon.wait() == 1, "exit code")
        text = daemon.stderr.read()
    need(text.count("\n") == 1 and "/dev/Unimem/mailboxA" in text, text)


def mailboxds():
    """The process ids of the mailbox daemons of node 0."""
    pids = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"unimem-mailboxd") and b"0" in words:
            pids.append(int(pid))
    return pids


def test_killed_daemon():
    """Open files fail at once when unimem-mailboxd is killed; a new open
    starts it again."""
    here, polled, there = local(), local(), remote()
    os.write(here, action(b"r", 3))
    pid = child(lambda: fails(errno.EIO, os.read, here, 8))
    sleeps(pid)
    old = mailboxds()
    need(len(old) == 1, "daemons: %s" % old)
    os.kill(old[0], signal.SIGKILL)
    both = select.POLLHUP | select.POLLERR
    need(poll(polled, 0, WAIT) & both == both, "no POLLHUP")
    need(ended(pid) == 0, "blocked reader")
    fails(errno.EIO, os.read, polled, 8)
    fails(errno.EIO, os.write, polled, action(b"r", 4))
    need(poll(there, 0, WAIT) & select.POLLHUP, "no POLLHUP at the writer")
    fails(errno.EIO, os.write, there, message(3, 1))
    for fd in (here, polled, there):
        os.close(fd)
    here, there = local(), remote()
    os.write(here, action(b"r", 3))
    os.write(there, message(3, 2))
    need(os.read(here, 8) == message(3, 2), "message of the new daemon")
    os.close(here)
    os.close(there)


def test_sigterm(daemons):
    """SIGTERM ends the daemons while a process reads; the devices are gone."""
    here = local()
    os.write(here, action(b"r", 3))

    def reader():
        try:
            os.read(here, 8)
            need(False, "a message")
        except OSError:
            pass
    pid = child(reader)
    sleeps(pid)
    lines = []
    for daemon in daemons:
        daemon.send_signal(signal.SIGTERM)
        lines.append(daemon.communicate()[1])
        need(daemon.returncode == 0, "exit code %d" % daemon.returncode)
    need(ended(pid) == 0, "reader")
    need(not os.path.exists("/dev/Unimem/mailboxA"), "a device is left")
    need(lines[0].count("\n") == 1 and "has ended" in lines[0] and
         lines[1] == "", str(lines))


# ---- The machine ------------------------------------------------------------

def start(board, name):
    """Start unimem-mailbox-cuse of a node."""
    return subprocess.Popen(  # pylint: disable=consider-using-with
        [PREFIX + "/bin/unimem-mailbox-cuse", "--board", str(board), "--name",
         name, "--ready-fd", "1"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def begin():
    """File systems, modules, the environment of the daemons."""
    for what, where in (("proc", "/proc"), ("sysfs", "/sys"),
                        ("devtmpfs", "/dev"), ("tmpfs", "/tmp")):
        os.makedirs(where, exist_ok=True)
        need(LIBC.mount(what.encode(), where.encode(), what.encode(), 0,
                        None) == 0, "mount " + where)
    for module in ("fuse", "cuse"):
        fd = os.open("/modules/%s.ko" % module, os.O_RDONLY)
        need(LIBC.syscall(313, fd, b"", 0) == 0, "module %s: %s" % (
            module, os.strerror(ctypes.get_errno())))    # finit_module
        os.close(fd)
    os.environ.update({"PATH": PREFIX + "/bin:/usr/bin:/bin",
                       "FI_UNIMEM_BOARDS": "2"})


def run(test, *args):
    """Run a test. Returns whether it passed."""
    try:
        test(*args)
        print("ok   cuse/" + test.__name__, flush=True)
        return True
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        print("not ok cuse/" + test.__name__, flush=True)
        return False


def main():
    """All tests, the last ones end the daemons."""
    begin()
    daemons = [start(0, "Unimem"), start(1, "Unimem1")]
    for daemon in daemons:
        line = daemon.stdout.readline()
        need(line == "ready\n", "not ready: %r" % line)
    results = [run(test) for name, test in globals().items()
               if name.startswith("test_") and name != "test_sigterm"]
    results.append(run(test_sigterm, daemons))
    print("%d passed, %d failed, 0 skipped" % (
        sum(results), len(results) - sum(results)), flush=True)


try:
    main()
except BaseException:  # pylint: disable=broad-except
    traceback.print_exc()
finally:
    sys.stdout.flush()
    LIBC.sync()
    LIBC.reboot(0x4321fedc)     # RB_POWER_OFF
    time.sleep(600)
