# SPDX-License-Identifier: BSD-2-Clause
"""The costs of a rank's peers on other boards: formulae, and a simulation of
connections that are made at the first message and closed when they are the
least recently used ones. docs/scale.md explains it; bench/scale measures.

Ranks are numbered through the boards: board = rank // ranks_per_board. A
pattern is a list of shifts. In a shift each rank sends to one rank, as in
bench/unm_peers.c.
"""

from collections import OrderedDict
import math

PATTERNS = ("ring", "halo2", "halo3", "dissemination", "alltoall")


def divisor(n, root):
    """The largest divisor of n that is at most the root-th root of n."""
    return max(d for d in range(1, math.isqrt(n) + 1)
               if n % d == 0 and d ** root <= n)


def torus(stride, size):
    """Functions rank -> receiver, of the shifts along one dimension."""
    def up(step):
        return lambda r: r + ((r // stride + step) % size -
                              r // stride % size) * stride
    return [up(s) for s in (1, size - 1)[:min(size - 1, 2)]]


def shifts(pattern, n):
    """The shifts of a pattern: functions rank -> receiver."""
    if pattern == "alltoall":
        return [lambda r, d=d: (r + d) % n for d in range(1, n)]
    if pattern == "dissemination":
        return [lambda r, d=1 << k: (r + d) % n
                for k in range((n - 1).bit_length())]
    if pattern == "doubling":           # n: a power of two, see mpi_init()
        return [lambda r, d=1 << k: r ^ d
                for k in range((n - 1).bit_length())]
    x = divisor(n, 3) if pattern == "halo3" else 1
    y = divisor(n // x, 2) if pattern.startswith("halo") else 1
    return torus(1, x) + torus(x, y) + torus(x * y, n // x // y)


class Job:
    """Links between ranks of different boards, with a limit per rank (None:
    no limit). A link is up at both ends or at neither."""

    def __init__(self, boards, ranks, limit=None):
        self.ranks = ranks
        self.n = boards * ranks
        self.limit = limit
        self.links = [OrderedDict() for _ in range(self.n)]
        self.known = [set() for _ in range(self.n)]
        self.setups = 0

    def use(self, a, b):
        """A message from a to b."""
        if a // self.ranks == b // self.ranks:
            return
        if b not in self.links[a]:
            self.setups += 1
            self.known[a].add(b)
            self.known[b].add(a)
        for x, y in ((a, b), (b, a)):
            self.links[x].pop(y, None)
            self.links[x][y] = True

    def close_idle(self):
        """Each rank with too many links closes the least recently used."""
        for a, links in enumerate(self.links):
            while self.limit is not None and len(links) > self.limit:
                b, _ = links.popitem(last=False)
                del self.links[b][a]

    def run(self, pattern, rounds=1):
        todo = shifts(pattern, self.n)
        for _ in range(rounds):
            for to in todo:
                for r in range(self.n):
                    self.use(r, to(r))
                self.close_idle()
        return self

    def mpi_init(self):
        """MPICH's MPI_Init exchanges messages by recursive doubling."""
        return self.run("doubling")

    def known_mean(self):
        """Peers on other boards with which a rank has exchanged messages."""
        return sum(len(k) for k in self.known) / self.n

    def links_mean(self):
        return sum(len(k) for k in self.links) / self.n


# ---- Formulae ---------------------------------------------------------------

# By how much a measured point may deviate: a part of the formula, or so many
# sockets, connections, descriptors or KiB, whichever is more.
MOST = {
    "sockets": (0.40, 8),
    "connections": (0.40, 0),
    "descriptors": (0.15, 4),
    "memory": (0.25, 32),
}


def neighbours(pattern, n):
    """Ranks with which a rank exchanges messages, in a job of any size."""
    if pattern == "alltoall":
        return n - 1
    if pattern == "dissemination":
        return len({s * (1 << k) % n for k in range((n - 1).bit_length())
                    for s in (1, -1)})
    return len({to(0) for to in shifts(pattern, n)})


def setups(pattern, boards, ranks, limit):
    """Connections that all ranks of a job set up in one round of a pattern; an
    upper bound for alltoall with a limit, and for the other patterns if some
    neighbours are on the same board."""
    n = boards * ranks
    if pattern == "alltoall":
        far = n * (n - ranks) // 2
        return far if limit is None or limit >= n - ranks else 2 * far
    return n * neighbours(pattern, n) // 2


def fit(points):
    """Least squares of y = a + b x: (a, b)."""
    n = len(points)
    mx = sum(x for x, _ in points) / n
    my = sum(y for _, y in points) / n
    sxx = sum((x - mx) ** 2 for x, _ in points)
    b = sum((x - mx) * (y - my) for x, y in points) / sxx if sxx else 0.0
    return my - b * mx, b
