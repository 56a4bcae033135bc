# SPDX-License-Identifier: BSD-2-Clause
"""The staircase of bench/exanode: its steps, what the model's figures add up to
for each, tables, goals and plots."""

import os
import re
import shlex
import shutil
import subprocess
import sys

from lib_bench import (BUSY, KIB, MIB, Results, digits, edit_doc, insert,
                       markdown, size_name, write_medians)
from lib_model import allowed, gives_back, off

# us, 0 bytes; the text does not say whether the first has the cache
PUBLISHED = {"published-1a": 23.41, "published-1b": 23.41,
             "published-2": 14.47}
PUBLISHED_BW = 360.59                   # MB/s, at best
# [H], as its text has them; the bound of a load is drawn as its value
STORE_MBS = [(8, 50), (64, 300)]        # figure 6: MB/s by bytes
STORE_RATE = [(8, 6), (16, 6), (32, 6), (64, 5)]        # figure 7: M/s
LOAD_NS = 2000                          # figure 8: of 8 bytes, prototype
ASIC_LOAD_NS = 1270                     # of 8 bytes, simulated
LOAD_64 = 1.12                          # 64 bytes take so many times 8 bytes
LATENCY_SIZES = "0,8,64,256,1K,4K,16K,64K,256K,1M"
WINDOW_SIZES = "64,1K,4K,16K,64K,256K,1M,4M"
QUICK_SIZES = "64,16K,1M"
AM_SIZES = "64,1K,4K,16K"
PEAK = 4 * MIB
FIGURE = "figure_"                      # metric of a reading of model_raw
MODEL = "model_"                        # of the figure of one that is judged
HEADER = 64                             # bytes of an active message, about
PIECE = 4 * KIB                         # of a stream, in the profile exanode

# Active messages above 16 KiB: without RMA, MPICH 4.0.2 cuts them into a pipeline,
# and ends by a signal when several are under way, over libfabric's tcp too. With
# RMA it reads them, and loses the description of one that completes before an
# earlier message (MPIDI_OFI_am_enqueue_unordered_msg() copies too few bytes). So
# windows of active messages end at 16 KiB, and only the one-sided step has no
# RMA.
AM = {"MPIR_CVAR_CH4_OFI_ENABLE_TAGGED": "0"}
AM_RMA = {**AM, "MPIR_CVAR_CH4_OFI_ENABLE_RMA": "0",
          "MPIR_CVAR_CH4_OFI_ENABLE_ATOMICS": "0"}
BARE = {"FI_UNIMEM_INLINE": "0", "FI_UNIMEM_EAGER_MAX": "0",
        "FI_UNIMEM_BOUNCE": "128M"}
# the owner of memory has to answer an import at once: the default is 50 us
NO_CACHE = {"FI_UNIMEM_RKEY_KEEP": "0", "FI_UNIMEM_SERVICE_US": "1"}

class Quiet(Results):
    """Without the figures of runs just before which others were busy, except of
    --quick, which measures nothing."""

    def add(self, row, doubt=""):
        if row["status"] == "ok" and row["set"] != "quick" and \
                float(row.get("busy") or 0) > BUSY:
            self.rows.append(row)       # counted by doubts()
        else:
            super().add(row, doubt)


# ---- What the model's figures add up to, in ns ---------------------------

def packet(m):
    return m["packet_latency"]


def carried(m):
    """A message in receive space: stores of a line, the load behind them, the
    packet that names it."""
    return 1e9 / m["line_rate"] + m["load_round_trip"] + packet(m)


def fetched(m, size):
    """RTS, then a transfer by the receiver."""
    return carried(m) + m["dma_setup"] + size * 1e9 / m["dma_bandwidth"]


def registered(m, size):
    return fetched(m, size) + m["route_registration"]


def requested(m):
    """A put of 8 bytes and its flush: a packet, and the number of executed
    requests that the target stores back."""
    return packet(m) + m["store_latency"]


def active_put(m):
    """A put by an active message, and the acknowledgement, which is longer than
    a packet too."""
    return 2 * carried(m)


def engine_bw(m):
    """MB/s of long transfers, one after the other."""
    return PEAK / (m["dma_setup"] + PEAK * 1e9 / m["dma_bandwidth"]) * 1e3


def stream_bw(m):
    """MB/s of pieces that a processor stores, with a load behind each."""
    lines = PIECE / 64 * 1e9 / m["line_rate"]
    return PIECE / (lines + m["load_round_trip"]) * 1e3


def active_bw(m):
    """MB/s of active messages of 16 KiB by the engine."""
    return 16 * KIB / (m["dma_setup"] + 16 * KIB * 1e9 /
                       m["dma_bandwidth"]) * 1e3


class Stair:
    """A configuration. shim: None, "memory" (MPI_Alloc_mem is dmable) or
    "receives" (so are MPICH's receive buffers of active messages). Of a
    one-sided step latency is that of a put of 8 bytes and its flush."""

    def __init__(self, name, title, env, latency=None, bandwidth=None,
                 shim=None, alloc=False):
        self.name = name
        self.title = title
        self.env = env
        self.latency = latency          # of 0 bytes by the model, ns
        self.bandwidth = bandwidth      # at most, by the model, MB/s
        self.shim = shim
        self.alloc = alloc              # buffers of MPI_Alloc_mem
        self.active = "MPIR_CVAR_CH4_OFI_ENABLE_TAGGED" in env


def without(env, *names):
    return {k: v for k, v in env.items() if k not in names}


INLINE, EAGER = "FI_UNIMEM_INLINE", "FI_UNIMEM_EAGER_MAX"
START = {**AM, **BARE, **NO_CACHE}
NATIVE = {"FI_UNIMEM_BOUNCE": "128M"}

STAIRS = [
    Stair("published-1a", "AM only, RTS, bounce buffers on both sides, a "
          "registration for each message", START,
          lambda m: registered(m, HEADER), active_bw),
    Stair("published-1b", "the same with the registration cache",
          {**AM, **BARE}, lambda m: fetched(m, HEADER), active_bw),
    Stair("published-2", "the same without the receive copy: dmable AM "
          "buffers", {**AM, **BARE}, lambda m: fetched(m, HEADER), active_bw,
          shim="receives"),
    Stair("inline", "published-1a and payload in the packet",
          without(START, INLINE), lambda m: registered(m, HEADER), active_bw),
    Stair("eager", "and eager messages into receive space",
          without(START, INLINE, EAGER), carried, active_bw),
    Stair("cache", "and the cache of remote memory", {**AM, **NATIVE},
          carried, active_bw),
    Stair("receives", "and dmable receive buffers", {**AM, **NATIVE},
          carried, active_bw, shim="receives"),
    Stair("tags", "and tag matching by the provider, no active messages",
          NATIVE, packet, engine_bw),
    Stair("direct", "and direct rendezvous between dmable user buffers", {},
          packet, engine_bw, shim="memory", alloc=True),
    Stair("defaults", "beside it: ordinary buffers, no parameter set", {},
          packet, stream_bw),
]

RMA = [
    Stair("rma-am", "one-sided by active messages", {**AM_RMA, **NATIVE},
          active_put, stream_bw),
    Stair("rma-native", "native RMA, ordinary memory: requests", NATIVE,
          requested, stream_bw),
    Stair("rma-direct", "native RMA, dmable memory: the engine", {},
          requested, engine_bw, shim="memory", alloc=True),
]


# ---- Goals ---------------------------------------------------------------

# Both goals are judged on this step: what is measured has to be one
# configuration that a program can have, and this one has each optimisation that
# [O] names as future work.
GOAL_STEP = "direct"


NEAR = 150                              # ns, a cache line from one core to the
                                        # other and back


class Goal:
    """A ratio of a step to a raw reading of the same run; runs: those from which
    it follows. It is not measured without either of them, or if the raw reading
    does not give its figure back: beside a raw packet that is late, any message
    looks fast. bounds: at most, at least; one of them is None.

    line: ns that a cache line takes from one core to the other and back, for a
    latency that depends on it. Software of one board exchanges no lines with
    another board, but the emulation does. So where the cores are far apart, what
    misses the goal by no more than this time is not judged."""

    def __init__(self, title, value, raw, bounds, runs, line=None):
        ceiling, least = bounds
        self.title = title
        self.runs = runs
        self.ratio = value / raw.held if value and raw.held else None
        self.why = "" if self.ratio is not None else \
            "no figure of step %s" % GOAL_STEP if not value else raw.why
        self.text = "at most %g" % ceiling if ceiling else \
            "at least %g" % least
        self.reached = None if self.ratio is None else \
            self.ratio <= ceiling if ceiling else self.ratio >= least
        self.far = self.reached is False and (line or 0) > NEAR and \
            value - line <= ceiling * raw.held
        if self.far:
            self.reached = None
            self.why = "a cache line takes %.0f ns from core to core and " \
                "back, between near ones %d at most" % (line, NEAR)


def median(res, metric, stair, size=0):
    return res.median(metric, stair, 2, size)


class Raw:
    """A raw figure in the results. good: does the reading give the figure back by
    the rule of bench/model? (None: that is not known, or not judged.) held: the
    reading as the denominator of a goal, or None, and why there is none. A time
    has the calls in it, so it counts only up to what the figure allows of a
    reading without calls: a slow call would make the goal easier."""

    def __init__(self, res, name):
        self.figure = median(res, MODEL + name, "raw")
        self.reading = median(res, FIGURE + name, "raw")
        self.unit = res.units.get((FIGURE + name, "raw", 2, 0))
        self.calls = median(res, FIGURE + name, "calls")
        self.good = gives_back(name, self.figure, self.reading, self.unit,
                               self.calls)
        self.held = None
        if self.reading and self.good:
            self.held = self.reading if self.unit != "ns" else \
                min(self.reading, allowed(name, self.figure))
        self.why = "no raw reading" if not self.reading else \
            "the raw reading has no figure to be held against" \
            if not self.figure else \
            "no reading of the calls alone" if self.good is None else \
            "the raw reading is off its figure"


def peak(res, stair):
    return max((res.median(*k) for k in res.values
                if k[0] == "bandwidth" and k[1] == stair), default=None)


def short(res, stair):
    """us of the shortest operation of a step: a message of 0 bytes, or a put
    of 8 bytes and its flush."""
    if stair not in RMA:
        return median(res, "latency", stair.name)
    put = median(res, "put", stair.name, 8)
    return put and put / 1e3


def put_bandwidth(res, stair):
    """(size, MB/s) of puts of a step, one at a time."""
    return [(k[3], k[3] / res.median(*k) * 1e3) for k in sorted(res.values)
            if k[:2] == ("put", stair.name)]


def at_best(res, stair):
    """MB/s of a step at best."""
    if stair not in RMA:
        return peak(res, stair.name)
    return max((bw for _, bw in put_bandwidth(res, stair)), default=None)


def GOALS(res):
    latency = median(res, "latency", GOAL_STEP)
    return [
        Goal("0-byte MPI latency of step %s / raw packet latency" % GOAL_STEP,
             latency and latency * 1e3, Raw(res, "packet_latency"),
             (1.3, None), {"latency", "raw"},
             median(res, "handover", GOAL_STEP, 64)),
        Goal("peak MPI bandwidth of step %s / raw DMA bandwidth" % GOAL_STEP,
             peak(res, GOAL_STEP), Raw(res, "dma_bandwidth"), (None, 0.95),
             {"bandwidth", "raw"}),
    ]


# ---- Tables --------------------------------------------------------------

def cell(value, n=2):
    return "" if value is None else digits(value, n)


STAIR_NOTE = "Residual: measured less published. Of the one-sided steps (rma-): " \
    "a put of 8 bytes and its flush, and one put at a time."
STAIR_HEADER = ["step", "0 B, us", "by the model", "published", "residual",
                "peak, MB/s", "by the model, at most", "published",
                "residual"]


def stair_rows(res, m):
    rows = []
    for s in STAIRS + RMA:
        lat, bw = short(res, s), at_best(res, s)
        known = PUBLISHED.get(s.name)
        known_bw = PUBLISHED_BW if s.name == "published-2" else None
        rows.append([
            s.name, cell(lat), cell(s.latency(m) / 1e3), cell(known),
            "%+.2f" % (lat - known) if lat and known else "",
            cell(bw, 1), cell(s.bandwidth(m), 1), cell(known_bw),
            "%+.1f" % (bw - known_bw) if bw and known_bw else ""])
    return rows


def by_size(res, metric, stairs, names=None):
    """Header and rows of a metric over sizes."""
    sizes = sorted({k[3] for k in res.values if k[0] == metric})
    kept = [s for s in stairs
            if any(median(res, metric, s.name, n) for n in sizes)]
    return ["size"] + [s.name for s in kept], [
        [(names or size_name)(n)] +
        [cell(median(res, metric, s.name, n)) for s in kept] for n in sizes]


RAW_HEADER = ["figure", "in the model", "reading", "unit", "off",
              "the calls alone", "given back"]
RAW_NOTE = "Judged by the rule of `bench/model`: off by 5 % at most, of times " \
    "without the calls and, where it polls, a round of polling."


def raw_rows(res):
    rows = []
    for key in sorted(res.values):
        name = key[0][len(FIGURE):]
        if not key[0].startswith(FIGURE) or key[1] != "raw":
            continue
        raw = Raw(res, name)
        share = off(raw.reading, raw.figure)
        rows.append([
            name, cell(raw.figure, 1), cell(raw.reading, 1), raw.unit,
            "" if share is None else "%+.1f %%" % (100 * share),
            cell(raw.calls, 1) if raw.unit == "ns" else "",
            {None: "not judged" if raw.figure is None else "not measured",
             True: "yes", False: "no"}[raw.good]])
    return rows


RING = re.compile(r"ring_(\d+)$")


def rings(res):
    """The numbers of cells that were measured."""
    return sorted({int(RING.match(k[0])[1]) for k in res.values
                   if RING.match(k[0])})


def ring_rows(res):
    sizes = sorted({k[3] for k in res.values if RING.match(k[0])})
    return [[size_name(n)] +
            [cell(median(res, "ring_%d" % cells, "raw", n), 1)
             for cells in rings(res)] for n in sizes]


def ring_note(res, m):
    raw = m["dma_bandwidth"] / 1e6
    most = max((res.median(*k) for k in res.values if RING.match(k[0])),
               default=0)
    return "Best: %s MB/s, %.0f %% of the figure of raw DMA. [Z]: 77 %% of the practical " \
        "link speed at best, with 8 to 16 cells of 4 to 32 MB." \
        % (digits(most, 1), 100 * most / raw)


def store_rows(res):
    return [[size_name(n), cell(median(res, "store", "raw", n), 1),
             cell(median(res, "store_rate", "raw", n))]
            for n in sorted({k[3] for k in res.values if k[0] == "store"})]


def load_rows(res):
    """Figures 8 and 9: what was published, and the model."""
    return [["%s: a load of 8 B" % title, cell(median(res, "load", who, 8), 0),
             known, cell(median(res, "loads_8", who, 1))]
            for who, title, known in (("raw", "prototype", "below 2,000"),
                                      ("asic", "ASIC", "1,270 (simulated)"))]


def tables(res, m):
    """(title, header, rows, note) of each."""
    rma = [("%s of a window" % name, *by_size(res, name, RMA),
            "ns" if "rate" not in name else "M/s")
           for name in ("put", "get", "put_rate")]
    return [
        ("The staircase", STAIR_HEADER, stair_rows(res, m), STAIR_NOTE),
        ("Latency (us)", *by_size(res, "latency", STAIRS), ""),
        ("Bandwidth, window 16 (MB/s)", *by_size(res, "bandwidth", STAIRS),
         ""),
        *rma,
        ("Raw figures of the model", RAW_HEADER, raw_rows(res), RAW_NOTE),
        ("A ring of cells, as figures 4.5 and 4.6 of [Z] (MB/s)",
         ["bytes of a cell"] + ["%d cells" % n for n in rings(res)],
         ring_rows(res), ring_note(res, m)),
        ("Posted stores, as figures 6 and 7 of [H]",
         ["size", "MB/s", "M/s of stores"], store_rows(res),
         "[H], prototype: about 50 MB/s at 8 B, up to 300 MB/s; more than 6 "
         "M/s up to 32 B, nearly 5 M/s at 64 B."),
        ("Loads, as figures 8 and 9 of [H]",
         ["load", "ns", "published", "MB/s, one under way"], load_rows(res),
         "The model has one load under way, as the prototype's processor."),
    ]


def goal_lines(res):
    return ["%s: %s, goal %s: %s" % (
        g.title, "-" if g.ratio is None else "%.3f" % g.ratio, g.text,
        {None: "not %s (%s)" % ("judged" if g.far else "measured", g.why),
         True: "reached", False: "missed"}[g.reached])
        for g in GOALS(res)]


def at_least(stair, m):
    """Us of the shortest operation of a step by figures that are never less: a
    header is one store of the shorter time, and no bytes to the engine."""
    return stair.latency({
        **m, "line_rate": max(m["line_rate"], m["store_rate"]),
        "dma_bandwidth": float("inf")}) / 1e3


def at_most(stair, m):
    """MB/s of a step by the bytes alone: no set-up, no load behind a piece."""
    return stair.bandwidth({**m, "dma_setup": 0, "load_round_trip": 0})


def early(res, m):
    """Steps that took less than the figures on their way: these are wrong, or
    the model is, which is never early."""
    return [s.name for s in STAIRS + RMA
            if short(res, s) is not None and short(res, s) < at_least(s, m)]


# ---- What a changed figure moves ------------------------------------------

# Without --set each of these is tried, one after the other: every figure that
# is in a sum. A time of 50 us is more than all that software takes in a step
# (2 ms in one that registers, by an exchange of messages that takes 300 us on
# a machine with slow system calls), a rate is a fiftieth. A file in which a load is
# faster than a store is refused.
CHANGES = [["packet_latency=50 us"], ["route_registration=2 ms"],
           ["dma_setup=50 us"], ["load_round_trip=50 us"],
           ["store_latency=50 us", "load_round_trip=50 us"],
           ["dma_bandwidth=20 MB/s"], ["line_rate=100 k/s"]]
MOVES_HEADER = ["step", "0 B, us", "changed", "moved by", "by the model",
                "MB/s", "changed", "at most"]
MOVES_NOTE = "* seen to move as the model says"


def long_size(stair):
    """Bytes of the transfers that show the bandwidth of a step. The comment at AM
    says why active messages are short."""
    return KIB if stair is RMA[0] else 4 * KIB if stair.active else 64 * KIB


def fastest(res, stair):
    """us of the shortest operation of a step, in the fastest repetition: a busy
    machine only adds to it."""
    metric, size, unit = ("put", 8, 1e3) if stair in RMA else ("latency", 0, 1)
    found = res.values.get((metric, stair.name, 2, size))
    return found and min(found) / unit


def widest(res, stair):
    """MB/s of a step in the fastest repetition, of which a busy machine only
    takes away."""
    if stair in RMA:
        key = ("put", stair.name, 2, long_size(stair))
        return key[3] / min(res.values[key]) * 1e3 \
            if key in res.values else None
    return max((v for k, found in res.values.items() for v in found
                if k[0] == "bandwidth" and k[1] == stair.name), default=None)


def due(stair, m_before, m_after):
    """By how many us a step moves: (at least, at most). A registration runs
    beside the emulation's exchange of the region, and the longer of the two
    counts: what it adds is between nothing and its figure."""
    kept = {**m_after, "route_registration": m_before["route_registration"]}
    return sorted((stair.latency(m) - stair.latency(m_before)) / 1e3
                  for m in (kept, m_after))


class Move:
    """A step under changed figures. seen: in what it moved for certain. The
    model is never early, so a step that was faster than the changed figures
    allow, and is not any more, has moved. wrong: in what it did not move as the
    model says."""

    def __init__(self, stair, before, after, m_before, m_after):
        self.name = stair.name
        self.was, self.now = fastest(before, stair), fastest(after, stair)
        self.bw_was, self.bw_now = widest(before, stair), widest(after, stair)
        self.missing = None in (self.was, self.now, self.bw_was, self.bw_now)
        self.due = due(stair, m_before, m_after)
        self.least, self.most = at_least(stair, m_after), at_most(stair,
                                                                  m_after)
        # us that are no figures: software, and the emulation
        self.software = (self.was or 0) - stair.latency(m_before) / 1e3
        self.seen, self.wrong = [], []
        if self.missing:
            return
        if self.now < self.least:
            self.wrong.append("latency")
        elif self.was < self.least:
            self.seen.append("latency")
        if self.bw_now > self.most:
            self.wrong.append("bandwidth")
        elif self.bw_was > self.most:
            self.seen.append("bandwidth")

    def judge_most(self, half):
        """On a quiet machine: it moves by its sum. half: of the smallest
        movement of a step, so that more is nearer to a figure that counts once
        more; less than software could be software."""
        if not self.missing and not self.wrong and self.software < half and \
                self.now - self.was > self.due[1] + half:
            self.wrong.append("latency, by more than its sum")

    def cells(self):
        least, most = self.due
        return [self.name, cell(self.was), cell(self.now),
                cell(self.now - self.was if self.was and self.now else None) +
                (" *" if "latency" in self.seen else ""),
                cell(most) if least == most else
                "%s to %s" % (cell(least), cell(most)),
                cell(self.bw_was, 1), cell(self.bw_now, 1) +
                (" *" if "bandwidth" in self.seen else ""),
                cell(self.most, 1)]


def moves(before, after, m_before, m_after, quick):
    """The move of each step when figures changed. Of a quick session only the
    direction is judged, which is certain on a busy machine too."""
    found = [Move(s, before, after, m_before, m_after) for s in STAIRS + RMA]
    halves = [abs(us) / 2 for move in found for us in move.due
              if abs(us) * 1e3 >= 1]
    if halves and not quick:
        for move in found:
            move.judge_most(min(halves))
    return found


def failed_lines(res):
    return ["no result: %s of %s: %s" % (run, peer, why)
            for (run, peer, _), why in sorted(res.status.items())]


def print_table(title, header, rows, note=""):
    width = [max(len(r[i]) for r in [header] + rows)
             for i in range(len(header))]
    print("\n" + title)
    for r in [header] + rows:
        print("  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w)
                        in enumerate(zip(r, width))).rstrip())
    if note:
        print(note)


def print_tables(res, m):
    for title, header, rows, note in tables(res, m):
        if rows:
            print_table(title, header, rows, note)
    print("\n" + "\n".join(res.doubts() + failed_lines(res) +
                           goal_lines(res)))


# ---- Plots ---------------------------------------------------------------

COLOURS = ["#7f7f7f", "#c0141c", "#e377c2", "#ff7f0e", "#bcbd22", "#2ca02c",
           "#17becf", "#1f6fb4", "#9467bd", "#000000", "#8c564b", "#ff9896",
           "#98df8a"]


def no_gnuplot():
    """None, or what --doc lacks."""
    return None if shutil.which("gnuplot") else \
        "--doc draws plots: install gnuplot (Debian: gnuplot-nox)"


def gnuplot(path, lines):
    if not lines:
        return False
    subprocess.run(["gnuplot"], text=True, check=True, input="\n".join([
        "set terminal svg size 760,420 background 'white' font 'sans,12'",
        "set output '%s'" % path, "set grid"] + lines) + "\n")
    return True


def plot_stairs(res, m):
    rows = [(s.name, short(res, s), s.latency(m) / 1e3) for s in STAIRS + RMA]
    rows = [r for r in rows if r[1]]
    known = [(i, PUBLISHED[r[0]]) for i, r in enumerate(rows)
             if r[0] in PUBLISHED]
    if not rows:
        return []
    data = ['%d "%s" %g %g' % (i, *r) for i, r in enumerate(rows)]
    return ["set title '0-byte latency; rma-: put of 8 bytes and flush "
            "(profile exanode+model)'",
            "set ylabel 'us'", "set yrange [0:*]", "set boxwidth 0.6",
            "set style fill solid 0.4", "set xtics rotate by -30",
            "$stairs << EOD", *data, "EOD",
            "$known << EOD", *["%d %g" % k for k in known], "EOD",
            "plot $stairs using 1:3:xtic(2) with boxes lc rgb '#1f6fb4' "
            "title 'measured', $stairs using 1:4 with points pt 7 lc rgb "
            "'#2ca02c' title 'sum of the figures'" +
            (", $known with points pt 9 ps 1.5 lc rgb '#c0141c' title "
             "'published'" if known else "")]


def plot_sizes(title, unit, lines, known=None):
    """lines: name and points of each curve; known: published points."""
    curves = [(name, colour, points)
              for (name, points), colour in zip(lines, COLOURS) if points]
    if not curves:
        return []
    sizes = sorted({x for *_, points in curves for x, _ in points})
    styles = ["linespoints lw 2"] * len(curves)
    if known:
        curves.append(("published", "#c0141c", known))
        styles.append("points pt 9 ps 1.5")
    return ["set title '%s (profile exanode+model)'" % title,
            "set logscale xy", "set key outside right top",
            "set ylabel '%s'" % unit, "set xlabel 'size'",
            "set xtics rotate by -30 (%s)" % ", ".join(
                '"%s" %d' % (size_name(n), n) for n in sizes),
            "plot " + ", ".join(
                "'-' using 1:2 with %s lc rgb '%s' title '%s'"
                % (style, colour, name)
                for (name, colour, _), style in zip(curves, styles)),
            *[line for *_, points in curves
              for line in ["%d %g" % p for p in points] + ["e"]]]


def plot_bars(title, unit, rows):
    """rows: of each bar its name, the model's value, the published value, and
    the value that follows from a published one; None: there is none."""
    rows = [("%d" % i, *row) for i, row in enumerate(rows)]
    if not any(value for _, _, value, *_ in rows):
        return []
    data, curves = [], []
    for column, (name, what, style) in enumerate((
            ("$model", "the model", "boxes lc rgb '#1f6fb4'"),
            ("$known", "published", "points pt 9 ps 1.5 lc rgb '#c0141c'"),
            ("$derived", "derived from [H]",
             "points pt 8 ps 1.5 lc rgb '#c0141c'")), 2):
        values = ["%s %g" % (r[0], r[column]) for r in rows if r[column]]
        if values:
            data += [name + " << EOD", *values, "EOD"]
            curves.append("%s with %s title '%s'" % (name, style, what))
    return ["set title '%s (profile exanode+model)'" % title,
            "set ylabel '%s'" % unit, "set yrange [0:*]",
            "set xrange [-0.7:%.1f]" % (len(rows) - 0.3), "set boxwidth 0.5",
            "set style fill solid 0.4", "set key outside right top",
            "set xtics (%s)" % ", ".join('"%s" %s' % (name, i)
                                         for i, name, *_ in rows),
            *data, "plot " + ", ".join(curves)]


def load_plots(res):
    """Figures 8 and 9 of [H]. One load is under way, of 8 bytes; the paper's
    64 bytes are its simulation of the prototype's engine, which its text gives
    as a multiple of 8 bytes. Bandwidths follow from times of loads."""
    def of(who, metric, size):
        return median(res, metric, who, size)

    return [
        ("load", plot_bars(
            "Latency of a load, as figure 8 of [H]", "ns",
            [("prototype,\\n8 B", of("raw", "load", 8), LOAD_NS, None),
             ("prototype,\\n64 B (simulated)", None, None, LOAD_NS * LOAD_64),
             ("ASIC,\\n8 B (simulated)", of("asic", "load", 8), ASIC_LOAD_NS,
              None)])),
        ("loads", plot_bars(
            "Loads, one under way, as figure 9 of [H]", "MB/s",
            [("prototype,\\n8 B", of("raw", "loads_8", 1), None,
              8e3 / LOAD_NS),
             ("prototype,\\n64 B (simulated)", None, None,
              64e3 / (LOAD_NS * LOAD_64))])),
    ]


def plots(res, m):
    def points(metric, peer):
        return sorted((k[3], res.median(*k)) for k in res.values
                      if k[:2] == (metric, peer) and k[3] > 0)

    def each(metric, stairs):
        return [(s.name, points(metric, s.name)) for s in stairs]

    return [
        ("stairs", plot_stairs(res, m)),
        ("latency", plot_sizes("Latency", "us", each("latency", STAIRS))),
        ("bandwidth", plot_sizes("Bandwidth", "MB/s",
                                 each("bandwidth", STAIRS) +
                                 [(s.name, put_bandwidth(res, s))
                                  for s in RMA])),
        ("put", plot_sizes("Put and flush", "ns", each("put", RMA))),
        ("ring", plot_sizes("A ring of cells", "MB/s",
                            [("%d cells" % n, points("ring_%d" % n, "raw"))
                             for n in rings(res)])),
        ("stores", plot_sizes("Posted stores, as figure 6 of [H]", "MB/s",
                              [("stores", points("store", "raw"))],
                              STORE_MBS)),
        ("store-rate", plot_sizes("Posted stores, as figure 7 of [H]", "M/s",
                                  [("stores", points("store_rate", "raw"))],
                                  STORE_RATE)),
        *load_plots(res),
    ]


# ---- The document --------------------------------------------------------

def block(res, m, folder):
    reps = len({r["rep"] for r in res.rows})
    text = "".join("**%s**\n\n" % line for line in res.doubts())
    text += "- Machine: %s, %s cores, Linux %s\n" % (
        res.first("cpu"), res.first("cores"), res.first("kernel"))
    text += "- Date: %s, source: %s, %s\n" % (
        res.first("date")[:10], res.first("commit"),
        res.version(STAIRS[0].name))
    text += "- Medians of at most %d repetition%s; profile `%s`: figures of the " \
        "model, not of a board\n" % (reps, "" if reps == 1 else "s",
                                     res.profile)
    text += "- Command: `%s`\n" % shlex.join(
        ["bench/exanode"] + [os.path.relpath(w) if os.path.isabs(w) else w
                             for w in sys.argv[1:]])
    text += "".join("- %s\n" % g for g in goal_lines(res))
    text += "".join("- %s\n" % g for g in failed_lines(res))
    for title, header, rows, note in tables(res, m):
        if rows:
            text += "\n### %s\n\n%s" % (title, markdown(header, rows))
            text += "\n%s\n" % note if note else ""
    text += "\n### Plots\n"
    for name, lines in plots(res, m):
        file = "exanode-%s.svg" % name
        if gnuplot(os.path.join(folder, file), lines):
            text += "\n![%s](%s/%s)\n" % (name, os.path.basename(folder), file)
    return text


def write_doc(path, res, m):
    folder = os.path.splitext(path)[0]
    edit_doc(path, "The published machine",
             lambda text: insert(text, "bench/exanode", res.profile,
                                 block(res, m, folder)))
    write_medians(res, os.path.join(folder, "exanode.csv"))
