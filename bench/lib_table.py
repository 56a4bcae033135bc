# SPDX-License-Identifier: BSD-2-Clause
"""The one table of bench/run: a line for each figure, with unimem, the best of
its peers, their ratio and where the cores were; and the counts of verdicts."""

from lib_bench import (KIB, MIB, NOT_OFFERED, Results, aligned, digits, head,
                       markdown, size_name)

OWN = "unimem"
LIMITS = ("raw", "hal")                 # what the machine allows: no peers

ABOUT = {
    OWN: "MPICH (ch4:ofi) over the unimem provider",
    "ofi-shm": "the same MPICH over libfabric's shm provider",
    "ofi-tcp": "the same MPICH over libfabric's tcp provider",
    "mpich-posix": "MPICH with its own posix shared memory",
    "mpich-ucx": "Debian's MPICH (ch4:ucx)",
    "openmpi": "Debian's Open MPI, its defaults",
}

LESS = ("us", "ns", "ms", "KiB")        # less is better; of others more
SHOWN = {"MB/s": (1e-3, "GB/s"), "msg/s": (1e-6, "M/s")}

# Figures that differ by less are level. The goal: how many lines may be behind,
# and how far.
LEVEL, MOST_BEHIND, FARTHEST_BEHIND = 1.03, 3, 1.2
VERDICTS = AHEAD, SAME, BEHIND, OPEN = "ahead", "level", "behind", "open"

HEADER = ["figure", "size", "ranks", "unit", OWN, "best peer", "which",
          "ratio", "verdict", "line, ns (unimem, peer)"]


class Line:
    """A line of the table: one figure over all peers."""

    def __init__(self, res, metric, ranks, size):
        self.res = res
        self.key = metric, ranks, size
        self.values = {p: res.median(metric, p, ranks, size) for p in ABOUT
                       if res.median(metric, p, ranks, size) is not None}
        self.unit = res.units[self.at(next(iter(self.values)))]
        self.own = self.values.pop(OWN, None)
        self.doubted = [p for p in self.values if self.marked(p)]
        sure = [p for p in self.values if p not in self.doubted]
        best = min if self.unit in LESS else max
        self.best = best(sure or self.values, key=self.values.get,
                         default=None)
        self.ratio, self.verdict = None, OPEN
        if self.best and self.own is not None and \
                min(self.own, self.values[self.best]) > 0:
            self.judge(self.values[self.best])

    def judge(self, peer):
        """A peer whose figure does not count may be the best one: only what
        is behind another already is no longer open."""
        self.ratio = peer / self.own if self.unit in LESS else self.own / peer
        verdict = AHEAD if self.ratio > LEVEL else \
            BEHIND if self.ratio < 1 / LEVEL else SAME
        if not self.marked(OWN) and not self.marked(self.best) and (
                verdict == BEHIND or not self.doubted):
            self.verdict = verdict

    def missing(self):
        """The peers that ran, without a figure, and do offer it."""
        metric, ranks, _ = self.key
        run = self.res.run_of[self.key]
        ran = {r["peer"] for r in self.res.rows
               if (r.get("run") or r["metric"]) == run and
               int(r["ranks"]) == ranks}
        return [p for p in ABOUT if p in ran and p != OWN and
                p not in self.values and
                self.res.status.get((run, p, ranks)) != NOT_OFFERED]

    def at(self, peer):
        metric, ranks, size = self.key
        return metric, peer, ranks, size

    def marked(self, peer):
        return self.res.mark(*self.at(peer))

    def shown(self, peer, value):
        if value is None:
            return "-"
        scale = SHOWN.get(self.unit, (1, ""))[0]
        return digits(value * scale, 3 if value * scale < 1 else 2) + \
            self.marked(peer)

    def cells(self):
        metric, ranks, size = self.key
        peers = [OWN] + ([self.best] if self.best else [])
        lines = [self.res.line(*self.at(p)) for p in peers]
        lines = ["%.0f" % ns if ns else "-" for ns in lines] \
            if any(lines) else []
        which = [self.best or ""] + [p + " *" for p in self.doubted
                                     if p != self.best]
        return [metric, size_name(size) if size else "", str(ranks),
                SHOWN.get(self.unit, (1, self.unit))[1],
                self.shown(OWN, self.own),
                self.shown(self.best, self.values.get(self.best)),
                ", ".join(which),
                digits(self.ratio, 2 if self.ratio >= 0.1 else 4)
                if self.ratio else "", self.verdict,
                ", ".join(lines)]


class Compared(Results):
    """The rows of one profile, over several peers."""

    def peers(self):
        seen = {r["peer"] for r in self.rows if r["metric"] not in LIMITS}
        return [p for p in ABOUT if p in seen]

    def lines(self):
        """In the order in which they were measured first."""
        keys = dict.fromkeys((r["metric"], int(r["ranks"]), int(r["size"]))
                             for r in self.rows if r["status"] == "ok" and
                             r["peer"] in ABOUT)
        return [Line(self, *key) for key in keys]

    def own_failed(self):
        """The HAL without a peer is ours, too."""
        return [run for run, peer, _ in self.status
                if peer == OWN or run == "hal"]

    def part(self):
        """Is a row of a session that left something out?"""
        return any("part" in r["set"].split() for r in self.rows)

    def absent(self):
        """Peers that any line lacks."""
        lacked = {p for line in self.lines() for p in line.missing()}
        return [p for p in self.peers() if p in lacked]

    def gone(self):
        """Peers that have no figure at all, though they offer some."""
        offer = {p for (_, p, _), why in self.status.items()
                 if why != NOT_OFFERED}
        return [p for p in self.peers() if p in offer and
                not any(key[1] == p for key in self.values)]


def count(lines):
    """How many lines have each verdict, and the ratio of the worst."""
    found = dict.fromkeys(VERDICTS, 0)
    for line in lines:
        found[line.verdict] += 1
    return found, max((1 / n.ratio for n in lines if n.verdict == BEHIND),
                      default=1)


def summary(res):
    """The last line of the table."""
    lines = res.lines()
    found, worst = count(lines)
    text = "%d line%s: %d ahead, %d level, %d behind" % (
        len(lines), "" if len(lines) == 1 else "s", found[AHEAD],
        found[SAME], found[BEHIND])
    if found[BEHIND]:
        text += " (the worst by %.2f)" % worst
    if found[OPEN]:
        text += ", %d open: no figure of unimem or of any peer, or none " \
            "that counts" % found[OPEN]
    lacking = sum(1 for line in lines if line.missing())
    if lacking:
        text += "; %d line%s a peer: %s" % (
            lacking, " lacks" if lacking == 1 else "s lack",
            ", ".join(res.absent()))
    if res.own_failed():
        text += "; RUNS OF UNIMEM FAILED: " + \
            ", ".join(sorted(set(res.own_failed())))
    return text + "."


def reached(res):
    """Is the goal reached? Only a whole session of all peers says so."""
    lines = res.lines()
    found, worst = count(lines)
    return bool(lines) and not res.own_failed() and not res.gone() and \
        not found[OPEN] and \
        found[BEHIND] <= MOST_BEHIND and worst <= FARTHEST_BEHIND


def failures(res):
    """Each run without a result, by peer and reason."""
    by = {}
    for (run, peer, ranks), status in sorted(res.status.items()):
        by.setdefault((peer, status), []).append("%s at %d ranks"
                                                 % (run, ranks))
    return ["%s%s (%s)" % ("" if peer == "-" else peer + ": ", status,
                           ", ".join(what))
            for (peer, status), what in by.items()]


NOTE = """\
Medians. Ratio: above 1, unimem is better, whatever the unit; level: within
%d %%. Line: a cache line from one core to the other and back, beside the runs of
unimem and of the best peer. Best is the best peer whose figure counts; those
with a * might be better.""" % round(100 * (LEVEL - 1))


def text_table(res):
    """For a terminal."""
    rows = [HEADER] + [line.cells() for line in res.lines()]
    text = "\nProfile %s\n" % res.profile + aligned(rows, (1, 2, 4, 5, 7))
    return "\n".join([text + NOTE] + res.doubts() + failures(res)
                     + [summary(res)])


# ------------------------------------------------------------ the document

def head_block(res):
    reps = len({r["rep"] for r in res.rows})
    options = " --quick" if "quick" in res.first("set").split() else \
        "" if reps == 3 else " --reps %d" % reps
    return "### Profile `%s`\n\n" % res.profile + head(
        res, "peers interleaved",
        "bench/run%s --doc docs/performance.md" % options,
        {p: ABOUT[p] for p in res.peers()})


def limits_block(res, metric, title, note):
    """A table of figures by size, a list of figures without a size."""
    tests = {}
    for (m, test, ranks, size) in sorted(res.values):
        if m == metric:
            tests.setdefault(test, {})[size] = \
                digits(res.median(m, test, ranks, size), 2) + \
                res.mark(m, test, ranks, size)
    if not tests:
        return ""
    text = "#### %s\n\n" % title
    lines, columns = [], []
    for test, by_size in tests.items():
        size = next(iter(by_size))
        unit = res.units[(metric, test, 2, size)]
        name = test.replace("_", " ")
        if len(by_size) > 2:
            columns.append((test, "%s (%s)" % (name, unit)))
            continue
        lines += ["- %s, %s: %s %s" % (name, size_name(n), v, unit)
                  for n, v in by_size.items()]
    if lines:
        text += "\n".join(lines) + "\n\n"
    sizes = sorted({n for test, _ in columns for n in tests[test]})
    text += markdown(["size"] + [shown for _, shown in columns],
                     [[size_name(n)] + [tests[test].get(n, "")
                                        for test, _ in columns]
                      for n in sizes])
    return text + "\n%s Command: `bench/run --only %s`.\n" % (note, metric)


def against_limits(res):
    """The ratios of unimem to the machine."""
    rows = []
    for title, own, limit, scale in [
            ("8 B latency / one-way cache-line transfer", ("latency", OWN, 2, 8),
             ("raw", "handover_one_way", 2, 64), 1000)] + [
            ("%s bandwidth / memcpy" % size_name(n),
             ("bandwidth", OWN, 2, n), ("raw", "memcpy", 2, n), 1 / 1000)
            for n in (64 * KIB, MIB, 4 * MIB)]:
        a, b = res.median(*own), res.median(*limit)
        if a and b:
            rows.append([title, "%.2f" % (a * scale / b) +
                         (res.mark(*own) or res.mark(*limit))])
    if not rows:
        return ""
    return "#### unimem against the machine\n\n" + \
        markdown(["ratio", "value"], rows)


def block(res):
    """The text of the document."""
    parts = [head_block(res)]
    rows = [line.cells() for line in res.lines()]
    if rows:
        parts.append(markdown(HEADER, rows) + "\n" + NOTE + "\n\n**"
                     + summary(res) + "**\n")
    failed = failures(res)
    if failed:
        parts.append("Runs without a result:\n\n" +
                     "".join("- %s\n" % text for text in failed))
    parts.append(limits_block(
        res, "raw", "Raw limits of the machine",
        "Two pinned processes, no MPI; two copies: the best cell size."))
    parts.append(limits_block(
        res, "hal", "Limits of the HAL",
        "The HAL's own packets and cDMA, no libfabric above."))
    parts.append(against_limits(res))
    return "\n".join(p for p in parts if p)
