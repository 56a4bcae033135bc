# SPDX-License-Identifier: BSD-2-Clause
"""Runs that count: made in one placement of the two cores.

The host of a virtual machine moves its processors, for seconds or minutes, to
where a cache line takes several times as long from one to the other, and every
figure of two processes depends on it. So the transfer time of a cache line is
read before and after each run. While a session runs, the gate waits, for some
time in all, for the nearest placement that has lasted for two runs. Nearer ones
come and go within a fraction of a second, when both processors are for a moment
threads of one core. When it has ended, only figures of one placement are
compared: that of most of its rows. The load by other processes is printed and
has no effect.
"""

import os
import sys
import time
from collections import Counter

LIMIT = 1.5                             # between readings in one placement
BUSY = 0.1                              # processors: above, figures are worse
OTHER = MOVED, FAR, NEARER = "moved", "far", "nearer"

# The gate's fields in a row of results: the two readings and the reading of the
# nearest placement so far, in ns; the processors that others used just before.
GATE_FIELDS = ["before", "after", "nearest", "busy"]


def ticks():
    """(of all processors, of these not idle), since the start."""
    with open("/proc/stat", encoding="ascii") as f:
        # idle and iowait are the 4th and 5th; guests are in user, too
        t = [int(word) for word in f.readline().split()[1:9]]
    return sum(t), sum(t) - t[3] - t[4]


def look(seconds):
    """How many processors others keep busy, while nothing of ours runs."""
    total, used = ticks()
    time.sleep(seconds)
    total, used = (now - was for now, was in zip(ticks(), (total, used)))
    return os.cpu_count() * used / total if total else 0.0


def doubt(before, after, nearest):
    """Why what was run between two readings does not count, or nothing."""
    if not before or not after:
        return "not gauged"
    if max(before, after) > LIMIT * min(before, after):
        return MOVED
    if not nearest:
        return ""
    if max(before, after) > LIMIT * nearest:
        return FAR
    return NEARER if LIMIT * min(before, after) < nearest else ""


def farthest(before, *readings):
    """Of what was read since, that which differs most; None: not read."""
    known = [ns for ns in readings if ns]
    return max(known, default=None, key=lambda ns: max(
        ns / before, before / ns)) if before else None


class Gate:
    """Functions without arguments: a gauge (ns, or None), a look, a clock (s).
    tries: how often a run may be made. patience: how many seconds of the session
    may go to waiting and to runs that do not count."""

    def __init__(self, gauge, look, tries, patience, clock=time.monotonic):
        self.gauge = gauge
        self.look = look
        self.tries = tries
        self.patience = patience
        self.clock = clock
        self.least = None               # of runs that did not move ...
        self.nearest = None             # ... and the next to it

    def settle(self, before, after):
        """Update the known placements by the readings of a run."""
        if not doubt(before, after, None):
            known = [ns for ns in (self.least, self.nearest) if ns]
            known = sorted(known + [max(before, after)]) + [None]
            self.least, self.nearest = known[:2]

    def spend(self, since):
        self.patience = max(0, self.patience - (self.clock() - since))

    def tell(self, what, *readings):
        print("placement %s: %s ns, nearest %.0f"
              % (what, ", ".join("%.0f" % ns for ns in readings),
                 self.nearest or min(readings)), file=sys.stderr, flush=True)

    def wait(self):
        """Until the cores are near, or patience has ended: (how busy others
        were, reading)."""
        told = False
        while True:
            start = self.clock()
            busy, before = self.look(), self.gauge()
            if doubt(before, before, self.nearest) != FAR or \
                    not self.patience:
                return busy, before
            if not told:
                self.tell("far, waiting", before)
            told = True
            self.spend(start)

    def run(self, once, inside=None):
        """Call once() until its run counts, or was made often enough. It
        returns a tuple that begins with a status: (the last one's tuple, its
        GATE_FIELDS). inside(tuple): readings that the run has made itself."""
        for left in reversed(range(self.tries)):
            busy, before = self.wait()
            start = self.clock()
            made = once()
            after = farthest(before, self.gauge(),
                             *(inside(made) if inside else ()))
            self.settle(before, after)
            why = doubt(before, after, self.nearest)
            if made[0] != "ok" or why not in OTHER:
                break
            again = left and self.patience
            self.tell(why + (", again" if again else ", kept with a mark"),
                      before, after)
            if not again:
                break
            self.spend(start)
        fields = ["%.1f" % (ns or 0) for ns in (before, after, self.nearest)]
        return made, dict(zip(GATE_FIELDS, fields + ["%.2f" % busy]))

    def in_turn(self, jobs):
        """Functions that return the GATE_FIELDS of their run, or None if it
        failed. Runs that do not count, because there was no better time or only
        later, have another turn while patience lasts; their new rows replace
        the first ones."""
        made = [(job, job()) for job in jobs]
        for job, fields in made:
            start = self.clock()
            if self.patience and fields and \
                    row_doubt(fields, self.nearest) in OTHER:
                job()
                self.spend(start)


# ------------------------------------------------------------ rows of a file

def readings(row):
    """Both, in ns; 0: not read. Older files have none."""
    return [float(row.get(field) or 0) for field in GATE_FIELDS[:2]]


def row_doubt(row, nearest):
    """Of a row with GATE_FIELDS, while the session runs."""
    return doubt(*readings(row), nearest) if row.get("before") else ""


def placement_of(rows):
    """The least reading of the placement that most rows of a session were made
    in, or None. Of several, the one next to what was the nearest at the end."""
    last = next((ns for ns in (float(r.get("nearest") or 0) for r in
                               reversed(rows)) if ns), None)
    known = Counter(tuple(sorted(readings(r))) for r in rows
                    if r.get("before") and not row_doubt(r, None))
    return max(sorted({least for least, _ in known},
                      key=lambda ns: abs(ns - (last or 0))),
               default=last, key=lambda placement: sum(
                   n for (least, most), n in known.items()
                   if placement <= least and most <= LIMIT * placement))


def row_differs(row, placement):
    """Why a row is not compared with those of this placement, or nothing."""
    if not row.get("before"):
        return ""
    why = row_doubt(row, None)
    if why or not placement:
        return why
    least, most = sorted(readings(row))
    if most > LIMIT * placement:
        return FAR
    return NEARER if least < placement else ""


def judged(rows):
    """(row, why it is not compared) of the rows of a session. Of those that had
    another turn, the last one that is compared, else the last one."""
    placement = placement_of(rows)
    found = {}
    for r in rows:
        key = tuple(r[f] for f in ("metric", "peer", "ranks", "size", "rep"))
        why = row_differs(r, placement)
        if not why or key not in found or found[key][1]:
            found[key] = r, why
    return list(found.values())
