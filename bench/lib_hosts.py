# SPDX-License-Identifier: BSD-2-Clause
"""The tables of bench/hosts: each figure of unimem between two hosts beside
another one, with a goal for the ratio of both; and the engines without MPI."""

from lib_bench import (NOT_OFFERED, Results, aligned, digits, head, markdown,
                       size_name)

OWN, ALONE, FLAT = "unimem", "unimem-alone", "unimem-flat"
UCX, TCP = "mpich-ucx", "ofi-tcp"
PERFTEST, FI_TCP, FI_RXM = "ucx_perftest", "fi-tcp", "fi-rxm"
OURS = (OWN, ALONE, FLAT)
ENGINES = (PERFTEST, FI_TCP, FI_RXM)

ABOUT = {
    OWN: "MPICH (ch4:ofi) over unimem, whose engine is UCX over TCP",
    UCX: "Debian's MPICH (ch4:ucx) over TCP: the engine's own figure",
    TCP: "the same MPICH as unimem's over libfabric's tcp provider",
    PERFTEST: "ucx_perftest over TCP, without MPI",
    ALONE: "unimem without FI_UNIMEM_NET",
    FLAT: "unimem, with MPIR_CVAR_NOLOCAL=1: MPICH takes each rank for a node",
    FI_TCP: "fi_pingpong over libfabric's tcp provider, without MPI",
    FI_RXM: "fi_pingpong over libfabric's tcp;ofi_rxm, without MPI",
}

AT_MOST, AT_LEAST, NOISE = "at most", "at least", "noise"
PACKET, TRANSFER, CABLE = "packet", "transfer", "%s, sent by a call"
RATE = "message rate of 4 pairs"
START, START_TWO = "MPI_Init, one host", "MPI_Init, two hosts"

# Of each figure: what it is compared with, and the goal of the ratio. A figure
# that counts bytes depends on no time.
GOALS = {
    "latency": (UCX, AT_MOST, 1.10),
    "bandwidth": (UCX, AT_LEAST, 0.95),
    RATE: (UCX, AT_LEAST, 0.95),
    **{name: (UCX, AT_MOST, 1.10)
       for name in ("bcast", "allreduce", "alltoall", "barrier")},
    **{CABLE % name: (FLAT, AT_MOST, 0.75) for name in ("bcast", "allreduce")},
    START: (ALONE, NOISE, None),
    START_TWO: (UCX, None, None),
}

HEADER = ["figure", "size", "ranks", "unit", OWN, "other", "which", "ratio",
          "goal", "reached", TCP, PERFTEST]
NOTE = """\
Medians. Ratio: unimem to the other. MPI_Init on one host is compared with the
same job without FI_UNIMEM_NET; the goal is that its median is no longer than
the second longest repetition of that job. Bytes on the cable are those of both hosts,
with ranks placed in turn; the other is a job in which MPICH does not know
which ranks share a host."""


class Line:
    """A figure of unimem, and the figure that it is compared with."""

    def __init__(self, res, metric, ranks, size):
        self.res = res
        self.key = metric, ranks, size
        self.other, self.kind, self.bound = GOALS[metric]
        own, other = self.value(OWN), self.value(self.other)
        self.ratio = own / other if own and other and other > 0 else None
        if self.kind == NOISE and other:
            # one late repetition is no bound
            self.bound = sorted(res.values[self.at(self.other)])[-2:][0] / other
        self.reached = ""
        if self.kind:
            self.reached = "open" if self.ratio is None or \
                self.mark(OWN) or self.mark(self.other) else \
                "yes" if self.holds() else "no"

    def holds(self):
        return self.ratio >= self.bound if self.kind == AT_LEAST else \
            self.ratio <= self.bound

    def at(self, peer):
        metric, ranks, size = self.key
        return metric, peer, ranks, size

    def value(self, peer):
        return self.res.median(*self.at(peer))

    def mark(self, peer):
        return self.res.mark(*self.at(peer))

    def shown(self, peer):
        value = self.value(peer)
        return "-" if value is None else digits(value, 2) + self.mark(peer)

    def unit(self):
        return next(self.res.units[self.at(p)] for p in ABOUT
                    if self.at(p) in self.res.units)

    def counted(self):
        """Is it a number of bytes?"""
        return self.unit() == "KiB"

    def goal(self):
        if not self.kind:
            return ""
        if not self.bound:
            return self.kind
        return "%s %.2f" % (AT_MOST if self.kind == NOISE else self.kind,
                            self.bound)

    def cells(self):
        metric, ranks, size = self.key
        return [metric, size_name(size) if size else "", str(ranks),
                self.unit(), self.shown(OWN), self.shown(self.other),
                self.other, "%.2f" % self.ratio if self.ratio else "",
                self.goal(), self.reached, self.shown(TCP),
                self.shown(PERFTEST)]


class Hosts(Results):
    """The rows of one profile."""

    def lines(self):
        """In the order in which they were measured first."""
        keys = dict.fromkeys((r["metric"], int(r["ranks"]), int(r["size"]))
                             for r in self.rows if r["status"] == "ok" and
                             r["peer"] in ABOUT)
        return [Line(self, *key) for key in keys if key[0] in GOALS]

    def part(self):
        return any("part" in r["set"].split() for r in self.rows)

    def quick(self):
        return "quick" in self.first("set").split()

    def own_failed(self):
        return sorted({"%s (%s): %s" % (run, peer, why) for (run, peer, _), why
                       in self.status.items() if peer in OURS})

    def others_failed(self):
        return sorted({"%s (%s): %s" % (run, peer, why) for (run, peer, _), why
                       in self.status.items()
                       if peer not in OURS and why != NOT_OFFERED})


def missed(res):
    """Names of the figures whose goals are not reached, or open."""
    return ["%s, %s%s" % (line.key[0], size_name(line.key[2]),
                          " (open)" if line.reached == "open" else "")
            for line in res.lines() if line.reached in ("no", "open")]


def flat(res):
    """Names of the collectives that are not shown to send less than those that
    know no hosts. A part of a session may have only one of both."""
    return [line.key[0] + (" (open)" if line.reached == "open" else "")
            for line in res.lines() if line.counted() and
            line.reached != "yes" and not (res.part() and None in (
                line.value(OWN), line.value(line.other)))]


def summary(res):
    reached = [line.reached for line in res.lines() if line.kind]
    text = "%d goals: %d reached, %d missed, %d open" % (
        len(reached), *map(reached.count, ("yes", "no", "open")))
    if res.own_failed():
        text += "; RUNS OF UNIMEM FAILED: " + "; ".join(res.own_failed())
    return text + "."


def text_table(res):
    """For a terminal."""
    rows = [HEADER] + [line.cells() for line in res.lines()]
    return "\n".join(
        ["\n" + aligned(rows, (1, 2, 4, 5, 7, 10, 11)) + NOTE] + res.doubts() +
        res.others_failed() + [engines(res), summary(res)])


def command(res):
    reps = len({r["rep"] for r in res.rows})
    return "bench/hosts%s --doc docs/net.md" % (
        " --quick" if res.quick() else "" if reps == 5 else
        " --reps %d" % reps)


def block(res):
    """The figures of MPI, for the document."""
    text = head(res, "peers in turn", command(res), {
        p: what for p, what in ABOUT.items()
        if any(r["peer"] == p for r in res.rows)})
    text += "\n" + markdown(HEADER, [line.cells() for line in res.lines()])
    text += "\n" + NOTE + "\n\n**" + summary(res) + "**\n"
    failed = res.others_failed()
    if failed:
        text += "\nRuns without a result:\n\n" + "".join(
            "- %s\n" % what for what in failed)
    return text


def engines(res):
    """The engines without MPI, for section 2 of the document."""
    rows = []
    for key in dict.fromkeys((r["metric"], int(r["ranks"]), int(r["size"]))
                             for r in res.rows if r["status"] == "ok"):
        if key[0] in (PACKET, TRANSFER):
            cells = []
            for peer in ENGINES:
                at = key[0], peer, *key[1:]
                value = res.median(*at)
                cells.append("-" if value is None else
                             digits(value, 2) + res.mark(*at))
            rows.append([key[0], size_name(key[2]), *cells])
    text = "".join("**%s**\n\n" % line for line in res.doubts())
    text += "One way between two hosts, us: half a round trip, medians of " \
        "%d. %s, %s cores,\nLinux %s, %s, source: %s. `%s`; the commands are " \
        "in its CSV file.\n\n" % (
            len({r["rep"] for r in res.rows}), res.first("cpu"),
            res.first("cores"), res.first("kernel"), res.first("date")[:10],
            res.first("commit"), command(res))
    return text + markdown(
        ["what", "size", "UCX, ucp active messages", "libfabric, tcp",
         "libfabric, tcp;ofi_rxm"], rows)
