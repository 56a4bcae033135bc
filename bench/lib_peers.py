# SPDX-License-Identifier: BSD-2-Clause
"""MPIs that bench/run and bench/hosts compare: how each is built and launched,
and its environment."""

import os
import re
import subprocess

from lib_bench import FOREIGN, output_of, sourced

OUT = "build/bench"
PREFIX = "build/install"
LEAN = "build/libfabric"                # may be missing
ENV_FILE = "build/env.sh"

# MPICH of this tree: compiler, launcher, folder of its programs in OUT
MPICH = ["build/mpich/bin/mpicc", "build/mpich/bin/mpirun", "mpich"]
# Debian's MPICH, and the packages that make it up
DEBIAN = ["mpicc.mpich", "mpirun.mpich", "mpich-debian", ["mpich", "libucx0"]]


class Peer:
    """One MPI and the fabric below it."""

    def __init__(self, name, mpicc, mpirun, binaries, packages, env=None,
                 env_file=None, tuned=False):
        self.name = name
        self.mpicc = mpicc
        self.mpirun = mpirun
        self.binaries = binaries        # folder below build/bench
        self.packages = packages        # Debian packages that make it up
        self.env = env or {}
        self.env_file = env_file
        self.tuned = tuned              # the algorithms of ENV_FILE alone
        self.broken = None              # why it cannot run at all
        self.version = ""

    def missing(self):
        """None, or what it needs beside its programs."""
        if self.env_file and not os.path.exists(self.env_file):
            return "no " + self.env_file
        return None

    def launcher(self, ranks, cores):
        words = [self.mpirun, "-n", str(ranks)]
        if "openmpi" in self.mpirun:
            if ranks > cores:
                words.append("--oversubscribe")
            if os.geteuid() == 0:
                words.append("--allow-run-as-root")
        return words

    def prepare(self):
        self.broken = build(self) or self.missing()
        if not self.broken:
            self.version = version_of(self)

    def changes(self, fabric=False):
        """The variables that a peer has besides the cleaned environment of
        the caller, in the order of its command. fabric: of a program on
        libfabric alone."""
        env = {k: v for k, v in sorted(os.environ.items())
               if self.env_file and k.startswith("FI_UNIMEM_")}
        if self.tuned and not fabric and os.path.exists(ENV_FILE):
            env.update({k: v for k, v in sourced(ENV_FILE, cleaned()).items()
                        if k.startswith("MPIR_CVAR_")})
        env.update(self.env)
        if fabric:                      # the same libfabric as MPICH
            env["LD_LIBRARY_PATH"] = LEAN + "/lib"
        if os.environ.get("LD_LIBRARY_PATH"):
            env["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        return env

    def environment(self, fabric=False):
        env = cleaned()
        if self.env_file:
            env.update(sourced(self.env_file, env))
        env.update(self.changes(fabric))
        return env


def cleaned():
    """The caller's environment without settings that change a peer."""
    return {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}


def prepare(chosen):
    for peer in chosen:
        peer.prepare()
        print("%-12s %s" % (peer.name, peer.broken or peer.version),
              flush=True)


def debian(packages):
    """Their versions."""
    return ", ".join(p + " " + (output_of(
        "dpkg-query", "-W", "-f", "${Version}", p) or "?") for p in packages)


def libfabric():
    """The version of the libfabric that MPICH runs on."""
    try:
        with open(LEAN + "/version", encoding="ascii") as f:
            return "libfabric " + f.read().strip()
    except OSError:
        return debian(["libfabric1"])


def version_of(peer):
    words = []
    if peer.mpirun.startswith("build/"):
        text = output_of(os.path.join(os.path.dirname(peer.mpirun),
                                      "mpichversion"))
        m = re.search(r"MPICH Version:\s*(\S+)", text)
        words += ["MPICH " + (m.group(1) if m else "?"), libfabric()]
    if peer.packages:
        words.append(debian(peer.packages))
    return ", ".join(words)


def build(peer):
    """Compile the programs with the peer's mpicc: None or what went wrong."""
    mpicc = peer.mpicc if "/" in peer.mpicc else \
        output_of("sh", "-c", "command -v " + peer.mpicc)
    if not mpicc or not os.access(mpicc, os.X_OK):
        return "no " + peer.mpicc
    folder = os.path.join(OUT, peer.binaries)
    os.makedirs(folder, exist_ok=True)
    stamp = os.path.join(folder, "mpicc")
    real = os.path.realpath(mpicc)
    try:
        with open(stamp, encoding="utf-8") as f:
            fresh = f.read() == real
    except OSError:
        fresh = False
    words = ["make", "-C", "bench", "MPICC=" + os.path.abspath(mpicc),
             "OUT=" + os.path.abspath(folder)]
    if not fresh:
        words.insert(1, "-B")
    log = os.path.join(folder, "make.log")
    with open(log, "w", encoding="utf-8") as f:
        r = subprocess.run(words, stdout=f, stderr=subprocess.STDOUT,
                           check=False)
    if r.returncode:
        return "does not build, see " + log
    with open(stamp, "w", encoding="utf-8") as f:
        f.write(real)
    return None


def figures(text, label, unit, column=1):
    """(label, size, value, unit) of every line of numbers. Without a unit each
    line names its figure first, which takes the place of %s in the label, and
    has its unit behind the value."""
    rows = []
    for line in text.splitlines():
        words = line.split()
        name, of = label, unit
        try:
            if not unit:
                name = label.replace("%s", words.pop(0).replace("_", " "))
                of = words[2]
            rows.append((name, int(words[0]), float(words[column]), of))
        except (IndexError, ValueError):
            continue                    # a line of text
    return rows
