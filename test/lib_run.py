# SPDX-License-Identifier: BSD-2-Clause
"""Shared by run-fabtests and run-mpich: places, children, the report.

Every process a runner starts is its child in a session of its own, and the
runner is the reaper of whatever its children leave behind. So a test ends by
its own hand or is ended here, always by process id, never by name; one that
leaves a process running has failed.
"""
import contextlib
import ctypes
import fcntl
import fnmatch
import hashlib
import os
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TEST = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(TEST)
BUILD = os.environ.get("UNIMEM_BUILD", os.path.join(TOP, "build"))
CACHE = os.environ.get("UNIMEM_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or
    os.path.join(os.environ.get("HOME") or "/tmp", ".cache"), "unimem")
PR_SET_CHILD_SUBREAPER = 36
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def die(text):
    sys.exit("%s: %s" % (os.path.basename(sys.argv[0]), text))


def share(text):
    """--thin N/R as (N, R), N as (N, 0): one of N tests, R from 0 to N - 1.
    check-full sets UNM_TEST_SHARE, a number of the job's inputs, which is added
    to R: each state of these has other shares."""
    found = re.fullmatch(r"(\d+)(?:/(\d+))?", text)
    part, rest = map(int, found.groups("0")) if found else (0, 0)
    if rest >= part:
        raise ValueError(text)
    turn = os.environ.get("UNM_TEST_SHARE")
    if turn and part > 1:
        rest = (rest + int(turn)) % part
        print("# UNM_TEST_SHARE=%s: --thin %s is %d/%d" % (turn, text, part,
                                                          rest), flush=True)
    return part, rest


# --- building ---------------------------------------------------------------

def hash_of(*words, trees=()):
    """A short hash over words and over all files of some trees."""
    total = hashlib.sha256()
    for word in words:
        total.update(str(word).encode() + b"\0")
    for tree in trees:
        for folder, dirs, files in os.walk(tree):
            dirs.sort()
            for name in sorted(files):
                path = os.path.join(folder, name)
                total.update(os.path.relpath(path, tree).encode() + b"\0")
                if os.path.isfile(path):
                    with open(path, "rb") as data:
                        total.update(data.read())
    return total.hexdigest()[:12]


def output_of(*argv):
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip()


def cached(name, title, build):
    """The folder CACHE/name, made by build(log, folder) if not yet there."""
    folder = os.path.join(CACHE, name)
    os.makedirs(CACHE, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, ".complete")):
            print("# building %s" % title, flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            with open(folder + ".log", "w") as log:
                try:
                    build(log, folder)
                except subprocess.CalledProcessError as error:
                    die("building %s failed, see %s.log: %s" %
                        (title, folder, error))
            with open(os.path.join(folder, ".complete"), "w"):
                pass
    return folder


def run(log, argv, cwd=None, env=None):
    """One step of a build; the caller's own compiler flags stay outside."""
    env = dict(env or os.environ)
    for name in ("CFLAGS", "CPPFLAGS", "LDFLAGS", "LIBS", "CC", "MAKEFLAGS"):
        env.pop(name, None)
    subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                   stdout=log, stderr=subprocess.STDOUT, check=True)


def jobs():
    return os.environ.get("UNIMEM_JOBS") or str(os.cpu_count() or 1)


def environment():
    """The variables of build/env.sh on top of the caller's."""
    script = os.path.join(BUILD, "env.sh")
    if not os.path.exists(script):
        return dict(os.environ)
    text = output_of("bash", "-c", '. "$0" >&2 && env -0', script)
    pairs = (item.split("=", 1) for item in text.split("\0") if "=" in item)
    return dict(pairs) or die("%s fails" % script)


# --- another user -----------------------------------------------------------

def visible(paths):
    """Let any user reach paths that lie below private folders.

    Called in a mount namespace of our own: an empty folder everyone may pass
    takes the place of each private one (such as root's home), and only the
    paths themselves are bound into it.
    """
    bound = []
    with tempfile.TemporaryDirectory(dir="/tmp") as work:
        os.chmod(work, 0o755)
        for path in sorted({os.path.realpath(p) for p in paths}):
            parts = path.split("/")
            above = ["/".join(parts[:n]) for n in range(2, len(parts))]
            private = [a for a in above if not os.stat(a).st_mode & 0o001]
            if private:
                stage = os.path.join(work, str(len(bound)))
                os.mkdir(stage)
                subprocess.run(["mount", "--rbind", path, stage], check=True)
                bound.append((private[0], stage, path))
        for folder in sorted({item[0] for item in bound}):
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755",
                            "tmpfs", folder], check=True)
        for _, stage, path in bound:
            os.makedirs(path, exist_ok=True)
            subprocess.run(["mount", "--move", stage, path], check=True)


def become(user, paths):
    """The account tests run under; restarts us in a namespace if needed."""
    if user is None:
        return None
    try:
        account = (pwd.getpwuid(int(user)) if user.isdigit()
                   else pwd.getpwnam(user))
        uid, gid = account.pw_uid, account.pw_gid
    except KeyError:
        if not user.isdigit():
            die("no user %s" % user)
        uid = gid = int(user)
    if uid == os.getuid():
        return None
    if os.getuid() != 0:
        die("only root can run tests as another user")
    if os.environ.get("UNIMEM_TEST_NS") != str(os.getppid()):
        # The child's parent is unshare's pid, which is ours: it execs.
        os.environ["UNIMEM_TEST_NS"] = str(os.getppid())
        os.execvp("unshare", ["unshare", "--mount", "--propagation",
                              "private", "--", sys.executable] + sys.argv)
    visible(paths)
    return uid, gid


# --- hosts ------------------------------------------------------------------

ON_HOST = os.path.join(TOP, "scripts", "on-host")


def with_hosts(count):
    """The hosts, [(address, process that holds its namespace)]: network
    namespaces of scripts/with-hosts, under which this restarts us."""
    place = os.environ.get("UNIMEM_CLUSTER")
    if not place:
        tool = os.path.join(TOP, "scripts", "with-hosts")
        os.execv(tool, [tool, str(count), sys.executable, "-B"] + sys.argv)
    with open(os.path.join(place, "hosts")) as data:
        words = [line.split() for line in data]
    hosts = [(name, int(pid)) for name, pid in words if name != "switch"]
    if len(hosts) < count:
        die("UNIMEM_CLUSTER has %d hosts, %d are needed" %
            (len(hosts), count))
    return hosts[:count]


def on_host(host, argv):
    """The command that runs argv on one of with_hosts()."""
    return [ON_HOST, host[0], shlex.join(argv)]


# --- children ---------------------------------------------------------------

def become_reaper():
    """Adopt the processes that our children leave behind when they end."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        die("cannot become the reaper of the tests' processes")


def interrupted(number, _frame):
    """End, by the runner's finally: here subprocess may hold the lock of
    a child, for which close() would wait for ever."""
    for other in STOPS:
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(128 + number)


def end_by_finally():
    """Let a signal that stops us run the runner's finally first."""
    for number in STOPS:
        signal.signal(number, interrupted)


def orphans(known=()):
    """Our children that live on after the test that made them; known are
    children that are no test's."""
    left = []
    with open("/proc/self/task/%d/children" % os.getpid()) as data:
        for pid in map(int, data.read().split()):
            with contextlib.suppress(ChildProcessError):
                if pid not in known and os.waitpid(pid, os.WNOHANG)[0] == 0:
                    left.append(pid)
    return left


def end_orphans(known=()):
    """Kill orphans() and what these leave behind; their process ids."""
    killed = set()
    for _ in range(200):
        left = orphans(known)
        if not left:
            break
        killed.update(left)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return killed


class Jail:
    """Starts the processes of one test after another and ends them all. Their
    files are in the folder work, which is made here if not given."""

    def __init__(self, account, work=None):
        self.account = account
        self.live = []
        become_reaper()
        self.work = work or tempfile.mkdtemp(prefix="unimem-test-", dir="/tmp")
        if account:
            os.chown(self.work, *account)
        end_by_finally()

    def start(self, argv, log, env, text="", cwd=None):
        """Start one process, text on its standard input."""
        env = dict(env, HOME=self.work, TMPDIR=self.work)
        more = {}
        if self.account:
            more = {"user": self.account[0], "group": self.account[1],
                    "extra_groups": []}
        with tempfile.TemporaryFile("w+", dir=self.work) as source:
            source.write(text)
            source.seek(0)
            child = subprocess.Popen(
                argv, stdin=source, stdout=log, stderr=subprocess.STDOUT,
                env=env, cwd=cwd or self.work, start_new_session=True, **more)
        self.live.append(child)
        return child

    def wait(self, children, limit, grace=None):
        """Wait for all; False if the time was over. With grace, once one
        has failed all that still run get that many seconds more."""
        end = time.monotonic() + limit
        pause = 0.002
        while None in [c.poll() for c in children]:
            if grace is not None and any(c.returncode for c in children):
                end = min(end, time.monotonic() + grace)
                grace = None
            if time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        return True

    def clear(self, grace=0):
        """End what still runs; how many processes there were that nobody
        waited for and that did not end by themselves within grace."""
        for child in self.live:
            if child.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        self.live = []
        end = time.monotonic() + grace
        while orphans() and time.monotonic() < end:
            time.sleep(0.005)
        return len(end_orphans())

    def close(self):
        self.clear()
        shutil.rmtree(self.work, ignore_errors=True)


# --- the report -------------------------------------------------------------

def read_reasons(path, prefix=""):
    """[(pattern, reason)] of a file of 'name: reason' lines."""
    found = []
    with open(path) as data:
        for number, line in enumerate(data, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            name, colon, reason = line.partition(": ")
            if not colon or not reason.strip():
                die("%s:%d: no 'name: reason'" % (path, number))
            if name.startswith(prefix):
                found.append((name[len(prefix):], reason.strip()))
    return found


def reason_for(reasons, name):
    for pattern, reason in reasons:
        if name == pattern or fnmatch.fnmatchcase(name, pattern):
            return reason
    return None


class Report:
    def __init__(self, suite):
        self.suite = suite
        self.count = {"ok": 0, "not ok": 0, "skip": 0}
        self.quarantine = read_reasons(os.path.join(TEST, "quarantine.txt"),
                                       suite + "/")
        self.start = time.monotonic()
        self.logs = os.path.join(BUILD, "log", suite)
        self.failed = []
        os.makedirs(self.logs, exist_ok=True)

    def line(self, kind, name, note=""):
        self.count[kind] += 1
        print("%s - %s%s" % (kind, name, note and " # " + note), flush=True)

    def quarantined(self, kind, name):
        """Whether the test is counted apart: test/quarantine.txt names it."""
        if not reason_for(self.quarantine, name):
            return False
        print("QUARANTINED: %s %s/%s" % (kind, self.suite, name), flush=True)
        return True

    def ok(self, name, seconds, note=""):
        if self.quarantined("passed", name):
            return
        self.line("ok", name, "%.1f s%s" % (seconds, note and ", " + note))

    def skip(self, name, reason):
        self.line("skip", name, reason)

    def not_ok(self, name, why, *outputs):
        """outputs: (title, text) pairs, shown in part and kept whole."""
        if self.quarantined("failed", name):
            print("# %s: %s" % (name, why))
        else:
            self.line("not ok", name, why)
            self.failed.append(name)
        safe = "".join(c if c.isalnum() or c in "._=-" else "_" for c in name)
        path = os.path.join(self.logs, safe[:180] + ".log")
        with contextlib.suppress(OSError), open(path, "w") as log:
            for title, text in outputs:
                log.write("--- %s\n%s\n" % (title, text))
        for title, text in outputs:
            print("#   --- %s" % title)
            for line in text.splitlines()[-15:]:
                print("#   " + line[:200])
        sys.stdout.flush()

    def finish(self):
        for name in self.failed:
            print("# failed: %s" % name)
        print("# %s: %.0f s" % (self.suite, time.monotonic() - self.start))
        print("%d passed, %d failed, %d skipped" % (
            self.count["ok"], self.count["not ok"], self.count["skip"]),
            flush=True)
        return 1 if self.count["not ok"] or not self.count["ok"] else 0
