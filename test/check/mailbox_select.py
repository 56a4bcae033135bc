#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""mailbox_select.py LIBRARY - descriptors of mailboxes with plain calls

Opens the mailboxes of two nodes with LIBRARY, libunimem-mailbox.so, and uses
only os.read, os.write, select, poll and epoll on them: in this process, and in
a child process that inherits the descriptors and has not loaded the library.
"""
import ctypes
import errno
import os
import select
import struct
import subprocess
import sys
import tempfile

READER = 0      # nodes
WRITER = 1
WAIT = 20       # seconds for a message, then the test fails
QUIET = 0.05    # seconds without a message


def action(kind, opcode, val=0):
    """The bytes of a struct mailbox_action_t."""
    return struct.pack("@cIi", kind, opcode, val)


def message(opcode, number):
    """The bytes of a message."""
    return struct.pack("=Q", opcode << 60 | number)


def need(condition, what):
    """Fail unless the condition is true."""
    if not condition:
        sys.exit("mailbox_select.py: " + what)


def readable(local, seconds):
    """Whether select, poll and epoll report a message; they have to agree."""
    says = [bool(select.select([local], [], [], seconds)[0])]
    poll = select.poll()
    poll.register(local, select.POLLIN)
    says.append(bool(poll.poll(0)))
    with select.epoll() as epoll:
        epoll.register(local, select.EPOLLIN)
        says.append(bool(epoll.poll(0)))
    need(len(set(says)) == 1, "select, poll, epoll: %s" % says)
    return says[0]


def plain(local, remote):
    """Send from remote to local with plain calls."""
    os.write(local, action(b"r", 6))
    need(not readable(local, QUIET), "a message before the first")
    os.set_blocking(local, False)
    try:
        os.read(local, 8)
        need(False, "read does not fail with EAGAIN")
    except BlockingIOError:
        pass
    for i in range(100):
        need(os.write(remote, message(6, i)) == 8, "write")
    for i in range(100):
        need(readable(local, WAIT), "message %d does not come" % i)
        need(os.read(local, 100) == message(6, i), "message %d" % i)
    need(not readable(local, QUIET), "a message after the last")
    os.set_blocking(local, True)
    os.write(remote, message(6, 7))
    need(os.read(local, 8) == message(6, 7), "blocking read")
    os.write(local, action(b"u", 6))


def full(local, remote):
    """A full mailbox refuses, and takes again once its reader reads."""
    os.set_blocking(remote, False)
    sent = 0
    while select.select([], [remote], [], QUIET)[1]:
        try:
            while True:
                os.write(remote, message(9, sent))
                sent += 1
        except BlockingIOError:
            pass
    os.write(local, action(b"r", 9))
    for i in range(sent):
        need(readable(local, WAIT), "message %d of %d" % (i, sent))
        need(os.read(local, 8) == message(9, i), "message %d" % i)
    need(select.select([], [remote], [], WAIT)[1], "it stays full")
    os.write(local, action(b"u", 9))
    os.set_blocking(remote, True)


def refused(local):
    """A wrong write makes the next call fail."""
    os.write(local, b"four")
    need(readable(local, WAIT), "no event after a wrong write")
    try:
        os.read(local, 8)
        need(False, "read succeeds after a wrong write")
    except OSError as error:
        need(error.errno == errno.ECONNRESET, str(error))


def open_node(lib, own, node):
    """Open the mailbox of a node, as a process of node own does."""
    # ctypes does not see os.environ
    ctypes.CDLL(None).setenv(b"FI_UNIMEM_BOARD", b"%d" % own, 1)
    fd = lib.mailbox_open(node, 0)
    need(fd >= 0, "mailbox_open(%d): %s" % (node, os.strerror(-fd)))
    return fd


def main():
    """Open, use, pass on."""
    if sys.argv[1] == "--inherited":
        local, remote = int(sys.argv[2]), int(sys.argv[3])
        plain(local, remote)
        full(local, remote)
        return
    lib = ctypes.CDLL(sys.argv[1])
    local = open_node(lib, READER, READER)
    remote = open_node(lib, WRITER, READER)
    plain(local, remote)
    full(local, remote)
    for fd in (local, remote):
        os.set_inheritable(fd, True)
    subprocess.run([sys.executable, "-B", __file__, "--inherited", str(local),
                    str(remote)], close_fds=False, check=True,
                   timeout=3 * WAIT, cwd=tempfile.gettempdir())
    plain(local, remote)
    with open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), 2)
        refused(local)


main()
