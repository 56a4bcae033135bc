# SPDX-License-Identifier: BSD-2-Clause
"""Shared by the runners: the machine, programs and their processes, tables."""

import csv
import itertools
import ctypes
import datetime
import os
import platform
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time

from lib_gate import BUSY, GATE_FIELDS, Gate, judged, look

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PR_SET_CHILD_SUBREAPER = 36

# The columns of a CSV file of results.
# run: what the row's program is called in a list of failures.
FIELDS = ["metric", "peer", "ranks", "size", "value", "unit", "rep", "status",
          "seconds", "set", "profile", "version", "commit", "cpu", "cores",
          "kernel", "date", "command", "run"] + GATE_FIELDS

NOT_OFFERED = "unavailable: not offered"
# Exit codes with a meaning: of fi_limits, and of all
WRONG = "failed: wrong data"
MEANING = {"failed: exit 77": NOT_OFFERED,
           "failed: exit 3": WRONG}

KIB, MIB = 1024, 1024 * 1024
COUNTED = ("words", "KiB")              # units that no delay changes

# Settings of the caller that would change a peer silently.
FOREIGN = re.compile(r"^(FI|MPI|MPICH|MPIR|OMPI|OPAL|ORTE|PMIX?|UCX|HYDRA|"
                     r"HYDI|PRTE|PSM2?|I_MPI|UNM)_")


# ----------------------------------------------------------- the machine

def output_of(*words):
    try:
        r = subprocess.run(words, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=False)
        return r.stdout.strip()
    except OSError:
        return ""


def machine():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        m = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$",
                      f.read(), re.M)
    cpu = m.group(1).strip() if m else platform.machine()
    kernel = re.match(r"[0-9.]*", platform.release()).group(0)
    return {"cpu": cpu, "cores": len(os.sched_getaffinity(0)),
            "kernel": kernel}


def commit():
    rev = output_of("git", "rev-parse", "--short=12", "HEAD")
    if not rev or not re.fullmatch(r"[0-9a-f]+", rev):
        return "none"
    changed = output_of("git", "status", "--porcelain", "-uno")
    return rev + ("+" if changed else "")


def sourced(path, env):
    """The variables that a shell file sets or changes in an environment."""
    r = subprocess.run(["bash", "-c", '. "$0" >&2 && env -0', path],
                       stdout=subprocess.PIPE, env=env, check=True)
    new = dict(item.split("=", 1)
               for item in r.stdout.decode().split("\0") if "=" in item)
    return {k: v for k, v in new.items()
            if env.get(k) != v and k not in ("_", "SHLVL", "PWD")}


def build_plain(out, prefix, target, program):
    """Make a program without MPI: None or what went wrong."""
    log = os.path.join(out, target + ".log")
    with open(log, "w", encoding="utf-8") as f:
        r = subprocess.run(["make", "-C", "bench", target,
                            "PREFIX=" + os.path.abspath(prefix),
                            "OUT=" + os.path.abspath(out)],
                           stdout=f, stderr=subprocess.STDOUT, check=False)
    if r.returncode or not os.access(os.path.join(out, program), os.X_OK):
        return "does not build, see " + log
    return None


def constants(words):
    """The fields that all rows of a session have; words: of its set."""
    return {"set": " ".join(words), "commit": commit(),
            "date": datetime.datetime.now(datetime.timezone.utc)
            .strftime("%Y-%m-%dT%H:%M:%SZ"), **machine()}


# ------------------------------------------------------------- processes

# The first number of libfabric's names is its owner's pid.
LEFT_BEHIND = re.compile(r"(\d+)(:\d+)*$|vader_segment\.|ucx_shm_")
SHM = "/dev/shm"
KEPT = set()                            # services, by pid: they outlive a run


def become_reaper():
    """Become the parent of orphaned descendants; end cleanly by SIGTERM."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def descendants():
    """Every process below this one, orphans too, but for those KEPT."""
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid, encoding="ascii",
                      errors="replace") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(pid) not in KEPT:
            children.setdefault(int(fields[1]), []).append(int(pid))
    found, todo = [], [os.getpid()]
    while todo:
        more = children.get(todo.pop(), [])
        found += more
        todo += more
    return found


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def clean_up():
    """End what a run left behind: only our own descendants."""
    for sig, patience in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 5.0)):
        end = time.monotonic() + patience
        told = set()
        while time.monotonic() < end:
            reap()
            left = descendants()
            if not left:
                return
            for pid in left:
                if pid in told:
                    continue
                told.add(pid)
                try:
                    os.kill(pid, sig)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)


def mapped(path):
    """Has any process mapped this file?"""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/maps" % pid, encoding="utf-8",
                      errors="replace") as f:
                if any(line.rstrip().endswith(path) for line in f):
                    return True
        except OSError:
            continue
    return False


def remove_named_memory(before):
    """Segments of libfabric's shm provider, Open MPI and UCX outlive a killed
    process. before: the names before our processes began."""
    for name in set(os.listdir(SHM)) - before:
        path = os.path.join(SHM, name)
        known = LEFT_BEHIND.match(name)
        if not known or known[1] and os.path.exists("/proc/" + known[1]):
            continue
        try:
            if os.stat(path).st_uid == os.geteuid() and not mapped(path):
                os.unlink(path)
        except OSError:                 # another has been faster
            continue


def shown(settings, words):
    """A command as documents name it: it works in the top folder of the tree,
    and does not say where that is."""
    return " ".join(["%s=%s" % (k, shlex.quote(v)) for k, v in settings] +
                    [shlex.join(words)]).replace(TOP + "/", "")


def execute(words, env, timeout):
    """Run one command: (status, output, errors, seconds)."""
    start = time.monotonic()
    named = set(os.listdir(SHM))
    status = "interrupted"
    try:
        status, out, err = finish(words, env, timeout)
    finally:
        clean_up()
        if status != "ok":
            remove_named_memory(named)
    return status, out, err, time.monotonic() - start


def finish(words, env, timeout):
    """(status, output, errors) of a command; it may leave processes."""
    try:
        child = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)
    except OSError as e:
        return "failed: " + e.strerror, "", ""
    try:
        out, err = child.communicate(timeout=timeout)
        status = "ok" if child.returncode == 0 else \
            "failed: exit %d" % child.returncode
    except subprocess.TimeoutExpired:
        status = "timeout: %g s" % timeout
        child.terminate()               # lets mpirun end its ranks
        try:
            out, err = child.communicate(timeout=2)
        except subprocess.TimeoutExpired:
            clean_up()
            out, err = child.communicate()
    return status, out, err


# ------------------------------------------------------------------ gate

def gauge_of(out, prefix, cores):
    """A function that measures a cache-line transfer between two cores, in
    ns, or None."""
    bad = build_plain(out, prefix, "gauge", "gauge")
    if bad:
        print("placement not gauged: " + bad, file=sys.stderr)

    def gauge():
        status, text, err, _ = execute(
            [os.path.join(out, "gauge"), "-p", cores], None, 10)
        if status == "ok":
            return float(text.split()[2])
        sys.stderr.write(err)
        return None
    return (lambda: None) if bad else gauge


def gate_of(out, prefix, cores, quick):
    """The gate of a session. A quick one is to show that everything runs, on a
    busy machine too: it hardly waits."""
    seconds, tries, patience = (0.1, 2, 5) if quick else (0.3, 8, 150)
    return Gate(gauge_of(out, prefix, cores), lambda: look(seconds), tries,
                patience)


# -------------------------------------------------------------- results

class Results:
    """The rows of one profile."""

    def __init__(self, profile):
        self.profile = profile
        self.rows = []
        self.values = {}        # (metric, peer, ranks, size): [value]
        self.doubted = {}       # the same, of runs that do not count
        self.placed = {}        # (the same, doubted?): [transfer in ns]
        self.marked = set()     # keys that have no others
        self.status = {}        # (run, peer, ranks): first that failed
        self.run_of = {}        # (metric, ranks, size): its run
        self.units = {}
        self.commands = {}

    def add(self, row, doubt=""):
        self.rows.append(row)
        metric, peer = row["metric"], row["peer"]
        ranks = int(row["ranks"])
        self.commands.setdefault((metric, peer, ranks), row["command"])
        if row["status"] != "ok":
            self.status.setdefault((metric, peer, ranks), row["status"])
            return
        # files of before have no runs
        self.run_of[metric, ranks, int(row["size"])] = row.get("run") or metric
        key = (metric, peer, ranks, int(row["size"]))
        # words and bytes are counted: they are so in any placement
        doubted = bool(doubt and row["unit"] not in COUNTED)
        values = self.doubted if doubted else self.values
        values.setdefault(key, []).append(float(row["value"]))
        if row.get("after"):
            self.placed.setdefault((key, doubted), []).append(
                float(row["after"]))
        self.units[key] = row["unit"]

    def settle(self):
        """After the last row: what has no value that counts shows another. The
        figures of runs in which a peer moved wrong data are none."""
        wrong = {key for key, text in self.status.items() if WRONG in text}
        for values in (self.values, self.doubted):
            for key in [k for k in values if (
                    self.run_of[k[0], k[2], k[3]], k[1], k[2]) in wrong]:
                del values[key]
        self.marked = set(self.doubted) - set(self.values)
        for key in self.marked:
            self.values[key] = self.doubted[key]

    def mark(self, *key):
        return " *" if key in self.marked else ""

    def doubts(self):
        """Sentences: what these figures are not good for, and why."""
        text = []
        if "quick" in self.first("set").split():
            text.append("Short runs (`--quick`): they show that everything "
                        "runs, and support no claim about speed.")
        runs = {(r["command"], r["rep"]): float(r.get("busy") or 0)
                for r in self.rows}
        busy = [b for b in runs.values() if b > BUSY]
        if busy:
            text.append("Other processes kept up to %.1f processors busy just "
                        "before %d of %d runs: no figures."
                        % (max(busy), len(busy), len(runs)))
        if "busy" in self.first("set").split():     # a file of before
            text.append("The machine was busy with something else: no "
                        "figures.")
        if self.marked:
            text.append("Figures with a * were made in another placement of "
                        "the two cores than others, or while it changed, or "
                        "it is not known: they are not to be held against "
                        "others.")
        return text

    def median(self, metric, peer, ranks, size):
        v = self.values.get((metric, peer, ranks, size))
        return statistics.median(v) if v else None

    def line(self, *key):
        """The cache-line transfer, in ns, beside these values, or None."""
        v = self.placed.get((key, key in self.marked))
        return statistics.median(v) if v else None

    def version(self, peer):
        return next((r["version"] for r in self.rows
                     if r["peer"] == peer and r["version"]), "-")

    def first(self, field):
        return next((r[field] for r in self.rows if r[field]), "?")


def load(paths, kind=Results):
    """Results by profile; rows without one follow the file they stand in.
    Comments (#) may be at the head of a file."""
    found = {}
    for path in paths:
        with open(path, newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(itertools.dropwhile(
                lambda line: line.startswith("#"), f)))
        own = {r["profile"] for r in rows} - {"-"}
        if len(own) > 1:
            sys.exit("%s: several profiles: %s"
                     % (path, ", ".join(sorted(own))))
        profile = own.pop() if own else "host"
        for row, why in judged(rows):
            found.setdefault(profile, kind(profile)).add(row, why)
    for res in found.values():
        res.settle()
    return found


def write_medians(res, path):
    """The medians, and where, when and of what the first of them was made."""
    run = [res.first(f) for f in ("cpu", "cores", "kernel", "date", "commit")]
    with open(path, "w", newline="", encoding="utf-8") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["metric", "peer", "ranks", "size", "median", "min", "max",
                    "n", "unit", "profile", "version", "cpu", "cores",
                    "kernel", "date", "commit", "command", "mark"])
        for key, v in sorted(res.values.items()):
            w.writerow([*key, "%.6g" % statistics.median(v), "%.6g" % min(v),
                        "%.6g" % max(v), len(v), res.units[key], res.profile,
                        res.version(key[1]), *run, res.commands[key[:3]],
                        res.mark(*key).strip()])
        for (metric, peer, ranks), status in sorted(res.status.items()):
            w.writerow([metric, peer, ranks, "", "", "", "", 0, status,
                        res.profile, res.version(peer), *run,
                        res.commands[(metric, peer, ranks)], ""])


# --------------------------------------------------------------- tables

def size_name(n):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if n >= unit and n % unit == 0:
            return "%d %s" % (n // unit, name)
    return "%d B" % n


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |",
             "|" + "|".join(["---"] + ["---:"] * (len(header) - 1)) + "|"]
    lines += ["| " + " | ".join(r) + " |" for r in rows]
    return "\n".join(lines) + "\n"


def aligned(rows, right):
    """Lines of text; right: the columns that end at the right."""
    width = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return "".join("  ".join(
        c.rjust(w) if i in right else c.ljust(w)
        for i, (c, w) in enumerate(zip(r, width))).rstrip() + "\n"
                   for r in rows)


def digits(value, n):
    if value >= 1000:
        return "{:,.0f}".format(value)
    return "%.*f" % (n if value < 100 else 1, value)


def insert(text, writer, profile, body):
    """Text with the writer's block of that profile written anew."""
    begin, end = ("<!-- %s generated by %s: %s -->" % (mark, writer, profile)
                  for mark in ("begin", "end"))
    new = "%s\n%s%s" % (begin, body, end)
    if begin in text and end in text:
        return text[:text.index(begin)] + new + \
            text[text.index(end) + len(end):]
    return text.rstrip("\n") + "\n\n" + new + "\n"


# ------------------------------------------------------------ documents

def head(res, how, command, about):
    """The head of a block: doubts, machine, command, and the peers. how: what
    was repeated; about: what each peer is."""
    reps = len({r["rep"] for r in res.rows})
    text = "".join("**%s**\n\n" % line for line in res.doubts())
    text += "- Machine: %s, %s cores, Linux %s\n" % (
        res.first("cpu"), res.first("cores"), res.first("kernel"))
    text += "- Date: %s, source: %s\n" % (res.first("date")[:10],
                                          res.first("commit"))
    text += "- Medians of %d repetition%s, %s\n" % (
        reps, "" if reps == 1 else "s", how)
    text += "- Command: `%s%s`\n\n" % (
        "" if res.profile == "host" else
        "FI_UNIMEM_PROFILE=%s " % res.profile, command)
    return text + markdown(["peer", "what it is", "version"],
                           [[p, what, res.version(p)]
                            for p, what in about.items()]).replace("---:",
                                                                   "---")


def edit_doc(path, title, edit):
    """Write a document anew: edit returns its new text. A document that does
    not exist yet begins with the title. Its folder for plots and figures is
    made."""
    os.makedirs(os.path.splitext(path)[0], exist_ok=True)
    try:
        with open(path, encoding="utf-8") as f:
            text = f.read()
    except FileNotFoundError:
        text = "# %s\n" % title
    text = edit(text)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def write_doc(path, writer, results, blocks, suffix=""):
    """Write the text of each profile into the document, and the medians beside
    it, into PROFILE + suffix + ".csv". blocks: functions of the results by the
    end of the block's name."""
    folder = os.path.splitext(path)[0]

    def edit(text):
        for profile, res in sorted(results.items()):
            for name, block in blocks.items():
                text = insert(text, writer, profile + name, block(res))
            write_medians(res, os.path.join(folder, profile + suffix + ".csv"))
        return text

    edit_doc(path, "Performance", edit)
