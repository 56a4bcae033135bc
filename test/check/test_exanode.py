# SPDX-License-Identifier: BSD-2-Clause
"""bench/exanode and bench/model, with results of our own: goals, the rule that
judges raw readings, what changed figures move, and what is refused."""

import argparse
import io
import os
import re
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "bench"))

import lib_exanode                      # noqa: E402
import lib_model                        # noqa: E402
from lib_exanode import FIGURE, GOAL_STEP, MODEL, RMA, STAIRS  # noqa: E402


def program(name):
    """A runner as a module: its name has no .py."""
    loader = SourceFileLoader("bench_" + name, os.path.join(TOP, "bench",
                                                            name))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


FILE = os.path.join(TOP, "prov/unimem/hal/exanode.model")
exanode, model = program("exanode"), program("model")
ALL = [s.name for s in STAIRS + RMA]
SOFTWARE = 2                            # us, in each step
ROW = "%s %.1f 0 0 %.1f %s 0 judged"    # as model_raw prints it


class Rule(unittest.TestCase):
    """Does a reading give its figure back?"""

    def judge(self, name, figure, *rows):
        """rows: readings, calls, and the verdict."""
        for reading, calls, verdict in rows:
            self.assertIs(lib_model.gives_back(
                name, figure, reading,
                "MB/s" if "bandwidth" in name else "ns", calls), verdict)

    def test_share(self):
        self.judge("dma_bandwidth", 1000, (949, None, False),
                   (951, None, True), (1049, None, True), (1051, None, False))

    def test_times_have_calls(self):
        self.judge("packet_latency", 1000, (1199, 100, True),
                   (1201, 100, False), (951, 0, True), (949, 0, False))

    def test_short_time(self):
        """Of 50 ns, 5 % are less than a round of polling."""
        for name in ("packet_latency", "store_latency", "load_round_trip",
                     "dma_setup"):
            self.judge(name, 50, (182, 80, True), (183, 80, False))

    def test_no_round(self):
        """Where nothing is polled, or one round among many packets."""
        for name in ("store_time", "line_time", "packet_gap"):
            self.judge(name, 1000, (1149, 100, True), (1151, 100, False))

    def test_no_figure(self):
        self.judge("packet_latency", 0, (80, 80, None))
        self.judge("packet_latency", None, (80, 80, None))
        self.judge("packet_latency", 1000, (None, 80, None),
                   (1000, None, None))
        self.assertIsNone(lib_model.off(80, 0))
        self.assertIsNone(lib_model.off(None, 80))
        self.assertAlmostEqual(lib_model.off(110, 100), 0.1)


class Files(unittest.TestCase):
    """A file that lacks a figure is refused in one line."""

    def said(self, call, *args):
        """The line of a call that ends the program with 2."""
        with redirect_stderr(io.StringIO()) as err, \
                self.assertRaises(SystemExit) as end:
            call(*args)
        self.assertEqual(end.exception.code, 2)
        self.assertEqual(err.getvalue().count("\n"), 1)
        return err.getvalue().strip()

    def refused(self, old, new):
        with open(FILE, encoding="utf-8") as f:
            text = f.read()
        self.assertIn(old, text)
        path = lib_model.write_model(text.replace(old, new), None)
        try:
            return self.said(lib_model.figures, path).partition(": ")[2]
        finally:
            os.unlink(path)

    def test_no_file(self):
        self.assertIn("No such file", self.said(lib_model.figures,
                                                "/nonexistent"))
        self.assertEqual(self.said(model.readings, "/nonexistent", "emu", FILE),
                         "/nonexistent: No such file or directory")

    def test_set(self):
        """A wrong --set is named."""
        for change, why in (
                ("nonsense=1", "not as packet_latency='2.0 us'"),
                ("nonsense=1 us", "no figure nonsense"),
                ("packet_latency=2us", "not as packet_latency='2.0 us'"),
                ("packet_latency=2 MB/s",
                 "packet_latency = 2 MB/s is no figure"),
                ("packet_latency=1.2.3 us",
                 "packet_latency = 1.2.3 us is no figure"),
                ("line_rate=0 M/s", "line_rate is 0")):
            self.assertEqual(self.said(lib_model.changed, FILE, [
                "dma_setup=1 us", change]), "--set %s: %s" % (change, why))

    def test_changed(self):
        """Only what is named, and the line keeps its source."""
        text = lib_model.changed(FILE, ["packet_latency = 2.5 us",
                                        "dma_bandwidth=900 MB/s"])
        with open(FILE, encoding="utf-8") as f:
            before = f.read()
        self.assertEqual(text, before.replace(
            "packet_latency = 1.0 us", "packet_latency = 2.5 us").replace(
            "dma_bandwidth = 1.0 GB/s", "dma_bandwidth = 900 MB/s"))

    def test_refused(self):
        self.assertEqual(self.refused("line_rate =", "# line_rate ="),
                         "no figure line_rate")
        self.assertEqual(self.refused("line_rate = 5", "line_rate = 0"),
                         "line_rate is 0")
        self.assertEqual(self.refused("line_rate = 5 M/s", "line_rate = 5 s"),
                         "line_rate = 5 s is no figure")

    def test_nothing(self):
        """No time is left, with any blanks that the provider takes."""
        with open(FILE, encoding="utf-8") as f:
            text = f.read()
        for first, equals, unit in (("", " = ", " "), ("", "=", " "),
                                    (" \t", "\t=  ", "\t \t")):
            spaced = re.sub(r"(?m)^(\w+) = (\S+) (\S+)",
                            first + r"\1" + equals + r"\2" + unit + r"\3",
                            text)
            path = lib_model.write_model(spaced, None)
            least = lib_model.nothing(path, None)
            try:
                was, m = lib_model.figures(path), lib_model.figures(least)
            finally:
                os.unlink(path)
                os.unlink(least)
            self.assertEqual(was, lib_model.figures(FILE))
            self.assertEqual(m, {
                **dict.fromkeys(lib_model.NAMES, 0), "store_rate": 1e9,
                "line_rate": 1e9, "dma_bandwidth": 1e12, "fifo_depth": 64,
                "store_queue": 16})


class Judge(unittest.TestCase):
    """bench/model, without model_raw."""

    def judged(self, *readings):
        calls = ROW % ("packet_latency", 0, 80, "ns")
        with redirect_stdout(io.StringIO()) as out:
            verdicts = list(model.judge("emu", calls, "\n".join(readings)))
        return verdicts, out.getvalue()

    def test_verdicts(self):
        late = ROW % ("packet_latency", 1000, 1300, "ns")
        verdicts, text = self.judged("# x", ROW % (
            "packet_latency", 1000, 1100, "ns"), late)
        self.assertEqual(verdicts, [True, False])
        self.assertIn("emu, packet_latency: the reading is 1.300", text)
        self.assertIn("calls 80 ns", text)

    def test_not_judged(self):
        self.assertEqual(self.judged(ROW % ("packet_latency", 0, 80, "ns"), (
            ROW % ("x", 1, 9, "ns")).replace("judged", "not judged"))[0], [])

    def test_no_calls(self):
        """A reading whose calls are not known fails."""
        self.assertEqual(self.judged(ROW % ("dma_setup", 9, 9, "ns"))[0],
                         [None])


class Sums(unittest.TestCase):
    """The sums of the figures of the prototype, in numbers."""

    # us and MB/s by the model; us at least, MB/s by the bytes alone
    TABLE = {
        "published-1a": (15.264, 891.21, 15.1667, 1000),
        "published-1b": (5.264, 891.21, 5.1667, 1000),
        "published-2": (5.264, 891.21, 5.1667, 1000),
        "inline": (15.264, 891.21, 15.1667, 1000),
        "eager": (3.2, 891.21, 3.1667, 1000),
        "cache": (3.2, 891.21, 3.1667, 1000),
        "receives": (3.2, 891.21, 3.1667, 1000),
        "tags": (1, 999.52, 1, 1000),
        "direct": (1, 999.52, 1, 1000),
        "defaults": (1, 276.76, 1, 320),
        "rma-am": (6.4, 276.76, 6.3333, 320),
        "rma-native": (2, 276.76, 2, 320),
        "rma-direct": (2, 999.52, 2, 1000)}

    def test_sums(self):
        m = lib_model.figures(FILE)
        self.assertEqual(ALL, list(self.TABLE))
        for stair in STAIRS + RMA:
            for value, due in zip((stair.latency(m) / 1e3, stair.bandwidth(m),
                                   lib_exanode.at_least(stair, m),
                                   lib_exanode.at_most(stair, m)),
                                  self.TABLE[stair.name]):
                self.assertLess(abs(value / due - 1), 2e-5, stair.name)

    def test_other_figures(self):
        """No two figures alike, so that none stands for another."""
        m = dict(zip(lib_model.NAMES, (
            1000, 0, 0, 50, 10e6, 4e6, 0, 2300, 4700, 500e6, 9100)))
        sums = {s.name: s.latency(m) for s in STAIRS + RMA}
        for name, ns in (("published-1a", 250 + 2300 + 1000 + 4700 + 128 +
                          9100),
                         ("published-1b", 250 + 2300 + 1000 + 4700 + 128),
                         ("eager", 250 + 2300 + 1000), ("direct", 1000),
                         ("rma-am", 2 * (250 + 2300 + 1000)),
                         ("rma-native", 1000 + 50)):
            self.assertAlmostEqual(sums[name], ns)
        peaks = {s.name: s.bandwidth(m) for s in STAIRS + RMA}
        for name, size, ns in (
                ("cache", 16384, 4700 + 32768), ("tags", 4194304,
                                                 4700 + 8388608),
                ("rma-native", 4096, 64 * 250 + 2300)):
            self.assertAlmostEqual(peaks[name], size / ns * 1e3)


class Goals(unittest.TestCase):
    """Both are of one step, and of raw readings that give their figures back."""

    RUNS = ("latency", "bandwidth", "raw")

    def results(self, **more):
        """us and MB/s of the step, ns and MB/s of the raw readings."""
        v = {"latency": 1.2, "bandwidth": 990, "packet": 1000,
             "figure": 1000, "calls": 50, "dma": 1000, "line": 80, **more}
        res = lib_exanode.Quiet("exanode+model")
        res.rows = [{"run": run} for run in self.RUNS]
        res.values = {key: [value] for key, value in {
            ("latency", GOAL_STEP, 2, 0): v["latency"],
            ("bandwidth", GOAL_STEP, 2, lib_exanode.PEAK): v["bandwidth"],
            (FIGURE + "packet_latency", "raw", 2, 0): v["packet"],
            (MODEL + "packet_latency", "raw", 2, 0): v["figure"],
            (FIGURE + "packet_latency", "calls", 2, 0): v["calls"],
            (FIGURE + "dma_bandwidth", "raw", 2, 0): v["dma"],
            (MODEL + "dma_bandwidth", "raw", 2, 0): 1000,
            ("handover", GOAL_STEP, 2, 64): v["line"],
        }.items() if value is not None}
        res.units = {key: "MB/s" if "dma" in key[0] else "ns"
                     for key in res.values}
        return res

    def missed(self, res, all_said=True):
        """The verdicts that were said; all_said: that of no other goal."""
        with redirect_stdout(io.StringIO()) as out:
            missed = list(exanode.missed_goals(res))
        said = [line for line in out.getvalue().splitlines()
                if all_said or not line.startswith("not judged")]
        self.assertEqual(len(said), len(missed))
        return [line.split(":")[0] for line in said]

    def test_reached(self):
        self.assertEqual(self.missed(self.results()), [])
        self.assertEqual(self.missed(self.results(latency=1.4)), ["missed"])
        self.assertEqual(self.missed(self.results(bandwidth=940)), ["missed"])

    def test_bounds(self):
        self.assertEqual(GOAL_STEP, "direct")
        for goal in lib_exanode.GOALS(self.results()):
            self.assertIn("of step direct /", goal.title)
        for more, said in (({"latency": 1.29}, []),
                           ({"latency": 1.31}, ["missed"]),
                           ({"bandwidth": 951}, []),
                           ({"bandwidth": 949}, ["missed"]),
                           ({"bandwidth": 959, "dma": 1010}, ["missed"]),
                           ({"latency": 1.31, "packet": 1020}, [])):
            self.assertEqual(self.missed(self.results(**more)), said, more)

    def test_one_step(self):
        """A better figure of another step does not count."""
        res = self.results(latency=1.4)
        res.values["latency", "tags", 2, 0] = [1.1]
        res.values["bandwidth", "tags", 2, 64] = [999]
        self.assertEqual(self.missed(res), ["missed"])
        self.assertIn("990", "%d" % lib_exanode.peak(res, GOAL_STEP))

    def test_raw_of_the_same_run(self):
        """A raw packet of 1.1 us is a fifth less than a message of 1.4 us."""
        self.assertEqual(self.missed(self.results(latency=1.4, packet=1090)),
                         [])

    def test_raw_is_late(self):
        """A raw packet that is late proves nothing."""
        late = self.results(latency=1.4, packet=1300)
        self.assertEqual(self.missed(late), ["not measured"])
        self.assertIn("off its figure", lib_exanode.goal_lines(late)[0])

    def test_slow_calls(self):
        """Calls make a raw packet late, but no goal easier."""
        for packet, calls in ((1500, 450), (1100, 50), (100e3, 99e3)):
            for latency, said in ((1.429, []), (1.431, ["missed"]),
                                  (1.94, ["missed"])):
                res = self.results(packet=packet, calls=calls,
                                   latency=latency)
                self.assertEqual(self.missed(res), said)

    def test_far_cores(self):
        """They keep no goal from being reached, and excuse no bandwidth, and a
        latency by the time of a cache line only."""
        for line, latency, bandwidth, said in (
                (150, 1.4, 990, ["missed"]), (None, 1.4, 990, ["missed"]),
                (151, 1.4, 940, ["missed"]), (151, 1.2, 940, ["missed"]),
                (151, 1.46, 990, ["missed"]), (200, 1.46, 990, [])):
            self.assertEqual(self.missed(self.results(
                line=line, latency=latency, bandwidth=bandwidth), False), said)
        far = self.results(line=151, latency=1.4)
        with redirect_stdout(io.StringIO()) as out:
            self.assertEqual(list(exanode.missed_goals(far)), [])
        self.assertEqual(
            out.getvalue(), "not judged: 0-byte MPI latency of step direct / "
            "raw packet latency is 1.400, goal at most 1.3: a cache line takes "
            "151 ns from core to core and back, between near ones 150 at "
            "most\n")
        self.assertIn("not judged (a cache line",
                      lib_exanode.goal_lines(far)[0])
        self.assertTrue(lib_exanode.goal_lines(self.results(
            line=151, latency=1.2))[0].endswith(": reached"))

    def test_not_measured(self):
        """Others were busy just before each run; or a figure is 0."""
        for more, why in (({"latency": None}, "no figure of step"),
                          ({"latency": 0}, "no figure of step"),
                          ({"packet": None}, "no raw reading"),
                          ({"packet": 0}, "no raw reading"),
                          ({"calls": None}, "no reading of the calls alone"),
                          ({"figure": None}, "no figure to be held against"),
                          ({"figure": 0}, "no figure to be held against")):
            res = self.results(**more)
            self.assertEqual(self.missed(res), ["not measured"])
            line = lib_exanode.goal_lines(res)[0]
            self.assertIn("not measured (", line)
            self.assertIn(why, line)

    def test_not_made(self):
        """--only left the runs of a goal out."""
        self.RUNS = ("latency",)
        self.assertEqual(self.missed(self.results(packet=None)), [])

    def test_raw_table(self):
        def row(**more):
            return lib_exanode.raw_rows(self.results(**more))[1][4:]

        self.assertEqual(row(packet=1020), ["+2.0 %", "50.0", "yes"])
        self.assertEqual(row(packet=1300), ["+30.0 %", "50.0", "no"])
        self.assertEqual(row(figure=0)[::2], ["", "not measured"])
        self.assertEqual(row(figure=None)[::2], ["", "not judged"])

    def test_readings(self):
        """The figure of a reading that is not judged is not noted."""
        text = "# x\n" + ROW % ("a", 10, 11, "ns") + "\n" + (
            ROW % ("b", 10, 12, "ns")).replace("judged", "not judged")
        self.assertEqual(exanode.readings(text), [
            (FIGURE + "a", 0, 11.0, "ns"), (MODEL + "a", 0, 10.0, "ns"),
            (FIGURE + "b", 0, 12.0, "ns")])


class Moves(unittest.TestCase):
    """The staircase under changed figures."""

    def setUp(self):
        self.m = lib_model.figures(FILE)
        self.changed = {**self.m, "packet_latency": 50e3}

    @staticmethod
    def results(m, more=None, share=0.5):
        """Each step takes its sum, software, and more (us) by step; its
        bandwidth is a share of what is possible. In a second repetition the
        machine was busy."""
        res = lib_exanode.Quiet("exanode+model")
        for s in STAIRS + RMA:
            us = s.latency(m) / 1e3 + SOFTWARE + (more or {}).get(s.name, 0)
            bw = share * s.bandwidth(m)
            if s in RMA:
                size = lib_exanode.long_size(s)
                pairs = [(("put", s.name, 2, 8), us * 1e3, 9),
                         (("put", s.name, 2, size), size / bw * 1e3, 9)]
            else:
                pairs = [(("latency", s.name, 2, 0), us, 9),
                         (("bandwidth", s.name, 2, 65536), bw, 1 / 9)]
            for key, value, busy in pairs:
                res.values[key] = [value, busy * value]
        return res

    def moves(self, after, changed=None, quick=False):
        return lib_exanode.moves(self.results(self.m), after, self.m,
                                 changed or self.changed, quick)

    def wrong(self, *args, **more):
        return [move.name for move in self.moves(*args, **more) if move.wrong]

    def seen(self, what, *args, **more):
        return [move.name for move in self.moves(*args, **more)
                if what in move.seen]

    def test_moves(self):
        after = self.results(self.changed)
        self.assertEqual(self.wrong(after), [])
        self.assertEqual(self.seen("latency", after), ALL)
        self.assertEqual(self.seen("bandwidth", after), [])

    def test_does_not_move(self):
        for quick in (False, True):
            self.assertEqual(self.wrong(self.results(self.m), quick=quick),
                             ALL)

    def test_bandwidth(self):
        changed = {**self.m, "dma_bandwidth": 20e6}
        engine = [n for n in ALL if n not in ("defaults", "rma-am",
                                              "rma-native")]
        after = self.results(changed)
        self.assertEqual(self.seen("bandwidth", after, changed), engine)
        self.assertEqual(self.wrong(after, changed), [])
        after = self.results(self.m)
        self.assertEqual(self.wrong(after, changed, quick=True), engine)

    def test_by_more_than_its_sum(self):
        """A figure that counts once too often; judged on a quiet machine
        only."""
        for name in ("tags", "rma-native"):
            after = self.results(self.changed, {name: 49})
            self.assertEqual(self.wrong(after), [name])
            self.assertEqual(self.wrong(after, quick=True), [])

    def test_software_is_more(self):
        """A change that software could hide is not judged."""
        changed = {**self.m, "packet_latency": 1.5e3}
        after = self.results(changed, {"tags": 2})
        self.assertEqual(self.wrong(after, changed), [])
        self.assertEqual(self.seen("latency", after, changed), [])

    def test_step_is_missing(self):
        after = self.results(self.changed)
        del after.values["latency", "eager", 2, 0]
        del after.values["put", "rma-am", 2, 1024]
        found = self.moves(after)
        self.assertEqual([m.name for m in found if m.missing],
                         ["eager", "rma-am"])
        for move in found:
            self.assertEqual(move.wrong, [])
            self.assertEqual(len(move.cells()),
                             len(lib_exanode.MOVES_HEADER))

    def test_registration(self):
        """Hidden behind the exchange of the region, wholly or in part."""
        changed = {**self.m, "route_registration": 60e3}
        for hidden in (0, SOFTWARE):
            after = self.results(changed, {"published-1a": -hidden,
                                           "inline": -hidden})
            self.assertEqual(self.wrong(after, changed), [])
            self.assertEqual(self.seen("latency", after, changed),
                             ["published-1a", "inline"])
        after = self.results(changed, {"published-1a": 40, "inline": -70,
                                       "published-1b": 40})
        self.assertEqual(self.wrong(after, changed),
                         ["published-1a", "published-1b", "inline"])

    def test_every_figure_of_a_sum(self):
        """Without --set each figure that a sum has is changed, by enough, and
        the provider takes the file."""
        tried = set()
        for changes in lib_exanode.CHANGES:
            path = exanode.changed_model(FILE, changes, None)
            try:
                changed = lib_model.figures(path)
            finally:
                os.unlink(path)
            self.assertGreaterEqual(changed["load_round_trip"],
                                    changed["store_latency"])
            after = self.results(changed)
            self.assertEqual(self.wrong(after, changed), [])
            self.assertTrue(self.seen("latency", after, changed) +
                            self.seen("bandwidth", after, changed))
            tried |= {c.split("=")[0] for c in changes}
        for name in self.m:
            other = {**self.m, name: 2 * self.m[name]}
            in_sum = any(s.latency(other) != s.latency(self.m) or
                         s.bandwidth(other) != s.bandwidth(self.m)
                         for s in STAIRS + RMA)
            self.assertEqual(name in tried, in_sum, name)

    def moved(self, figure, value):
        """By how much each step changes when a figure doubles, as a multiple
        of the smallest change; the steps that do not change are left out."""
        other = {**self.m, figure: 2 * self.m[figure]}
        by = {s.name: abs(value(s, other) - value(s, self.m))
              for s in STAIRS + RMA}
        by = {name: change for name, change in by.items() if change > 1e-6}
        return {name: change / min(by.values())
                for name, change in by.items()}

    @staticmethod
    def named(cell):
        """The steps of a cell of the table, and how often each is moved."""
        found = {}
        first, _, but = cell.partition(" but ")
        for name in first.split(", "):
            name, _, often = name.partition(" ")
            for step in ALL if name == "all" else [name]:
                found[step] = 2 if often == "(twice)" else 1
        for step in but.split(", ") if but else []:
            del found[step]
        found.pop("none", None)
        return found

    def test_table_of_figures(self):
        """docs/exanode.md, "Changed figures", says what the sums say."""
        with open(os.path.join(TOP, "docs/exanode.md"),
                  encoding="utf-8") as f:
            table = f.read().partition("| figure | latencies that")[2]
        rows = {}
        for line in table.splitlines()[2:]:
            if not line.startswith("|"):
                break
            name, latencies, peaks = line.split(" | ")[:3]
            rows[name.strip("| `")] = latencies, peaks
        self.assertEqual(sorted(rows), sorted(self.m))
        for name, (latencies, peaks) in rows.items():
            by = self.moved(name, lambda s, m: s.latency(m))
            self.assertEqual({step: round(n) for step, n in by.items()},
                             self.named(latencies), name)
            for n in by.values():
                self.assertAlmostEqual(n, round(n), 6, name)
            self.assertEqual(
                sorted(self.moved(name, lambda s, m: s.bandwidth(m))),
                sorted(self.named(peaks)), name)

    def test_early(self):
        res = self.results(self.m)
        self.assertEqual(lib_exanode.early(res, self.m), [])
        res.values["latency", "tags", 2, 0] = [0.99]
        self.assertEqual(lib_exanode.early(res, self.m), ["tags"])

    def code(self, after, changes=("packet_latency=50 us",), before=None):
        """The exit code of --moves, and what it says."""
        measured = iter([before or self.results(self.m)] + [after] * 9)
        opts = argparse.Namespace(model=FILE, changes=list(changes),
                                  quick=True)
        with redirect_stdout(io.StringIO()) as out, \
                tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(exanode, "OUT", folder), \
                mock.patch.object(exanode, "results",
                                  lambda *_: (next(measured), "")):
            return exanode.all_moves(opts), out.getvalue()

    def test_code(self):
        after = self.results(self.changed)
        code, text = self.code(after)
        self.assertEqual(code, 0)
        self.assertIn("\n%d passed, 0 failed, 0 skipped" % len(ALL), text)
        failed = self.results(self.changed), self.results(self.m)
        for res in failed:
            res.status["latency", "tags", 2] = "failed: exit 1"
        for results in ((failed[0],), (after, ["packet_latency=50 us"],
                                       failed[1])):
            code, text = self.code(*results)
            self.assertEqual(code, 1)
            self.assertIn("\n%d passed, 1 failed, 0 skipped" % len(ALL),
                          text)
        code, text = self.code(self.results(self.m))
        self.assertEqual(code, 1)
        self.assertIn("tags did not move by its sum: latency", text)
        del after.values["put", "rma-am", 2, 8]
        code, text = self.code(after)
        self.assertEqual(code, 3)
        self.assertIn("rma-am was not measured", text)
        code, text = self.code(self.results(self.m),
                               ["packet_latency=1.1 us"])
        self.assertEqual(code, 2)
        self.assertIn("no step was seen to move", text)


class Runner(unittest.TestCase):
    def refused(self, *words):
        """The exit code and the last line of standard error."""
        with redirect_stderr(io.StringIO()) as err, mock.patch.object(
                sys, "argv", ["exanode", *words]), \
                self.assertRaises(SystemExit) as end:
            exanode.options()
        return end.exception.code, err.getvalue().splitlines()

    def test_no_gnuplot(self):
        with tempfile.TemporaryDirectory() as empty, \
                mock.patch.dict(os.environ, PATH=empty):
            code, lines = self.refused("--doc", "x.md")
        self.assertEqual((code, len(lines)), (2, 1))
        self.assertIn("install gnuplot", lines[0])

    def test_wrong_calls(self):
        for words in (["--moves", "--from", "x"], ["--moves", "--only", "raw"],
                      ["--moves", "--doc", "x"], ["--only", "y"],
                      ["--from", "/nonexistent"]):
            self.assertEqual(self.refused(*words)[0], 2)

    def ended(self, *words):
        """The exit code and standard error of a whole call without MPICH."""
        with tempfile.TemporaryDirectory() as folder, \
                redirect_stderr(io.StringIO()) as err, \
                mock.patch.multiple(exanode, OUT=folder, MPICH="/nonexistent",
                                    become_reaper=lambda: None), \
                mock.patch.object(sys, "argv", ["exanode", *words]), \
                self.assertRaises(SystemExit) as end:
            exanode.main()
        return end.exception.code, err.getvalue().splitlines()

    def test_ends_with_2(self):
        """Before anything is measured, and with one line."""
        for words, line in (
                (["--set", "nonsense=1 us"], "--set nonsense=1 us: no figure"),
                (["--moves", "--set", "packet_latency=2us"],
                 "--set packet_latency=2us: not as"),
                (["--model", "/nonexistent"], "/nonexistent: No such file"),
                ([], "bench/exanode: no /nonexistent/bin/mpicc"),
                (["--moves"], "bench/exanode: no /nonexistent/bin/mpicc")):
            code, lines = self.ended(*words)
            self.assertEqual((code, len(lines)), (2, 1), lines)
            self.assertTrue(lines[0].startswith(line), lines)

    def test_waits_while_busy(self):
        """For a quiet moment, but not for ever; a quick session does not."""
        def waited(looks, **opts):
            bench = exanode.Bench(argparse.Namespace(
                cores="0,1", **{"quick": False, **opts}), FILE,
                io.StringIO())
            rest = iter(looks)
            with redirect_stderr(io.StringIO()), \
                    mock.patch.object(exanode, "look", lambda _: next(rest)):
                return bench.wait(), len(list(rest))

        self.assertEqual(waited([0.2, 0.3, 0.0, 9]), (0.0, 1))
        self.assertEqual(waited([0.2, 0.0], quick=True), (0.2, 1))
        self.assertEqual(waited([0.5] * 10000)[0], 0.5)

    def shown(self, text, *words):
        """--from a file of this text: the figures of its sums, and what was
        printed."""
        seen = []
        with tempfile.TemporaryDirectory() as folder, \
                redirect_stdout(io.StringIO()) as out, \
                mock.patch.multiple(exanode, OUT=folder, print_tables=lambda
                                    _, m: seen.append(m)):
            path = os.path.join(folder, "x.csv")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            with mock.patch.object(sys, "argv", ["exanode", "--from", path,
                                                 *words]):
                exanode.main()
        return seen[0], out.getvalue()

    def test_figures_of_a_file(self):
        """The sums are by the figures that the results were measured with."""
        change = "packet_latency=50 us"
        path = exanode.changed_model(FILE, [change], None)
        try:
            figures, csv = lib_model.figures(path), io.StringIO()
            bench = exanode.Bench(argparse.Namespace(cores="0,1", quick=True),
                                  path, csv)
        finally:
            os.unlink(path)
        with redirect_stdout(io.StringIO()):
            bench.write({"peer": "tags", "run": "latency", "metric": "latency",
                         "rep": 1}, "ok", [("latency", 0, "60", "us")], 1)
        own, text = self.shown(csv.getvalue())
        self.assertEqual(own, figures)
        self.assertNotIn("no figures of the model", text)
        with self.assertRaises(SystemExit), redirect_stderr(io.StringIO()):
            self.shown(csv.getvalue(), "--set", change)
        old = re.sub("^#.*\n", "", csv.getvalue(), flags=re.M)
        for words, used in ((), lib_model.figures(FILE)), \
                (("--set", change), figures):
            other, text = self.shown(old, *words)
            self.assertEqual(other, used)
            self.assertIn("no figures of the model: sums by %s" % ", ".join(
                [FILE, *words[1:]]), text)

    def test_derived_points(self):
        """Points that the paper does not have are not called published."""
        res = lib_exanode.Quiet("exanode+model")
        for peer in ("raw", "asic"):
            res.values["load", peer, 2, 8] = [2000]
            res.values["loads_8", peer, 2, 1] = [4]
        load, loads = ("\n".join(lines)
                       for _, lines in lib_exanode.load_plots(res))
        self.assertIn("$known << EOD\n0 2000\n2 1270\nEOD\n"
                      "$derived << EOD\n1 2240\nEOD", load)
        self.assertIn("figure 8 of [H] (profile", load)
        self.assertNotIn("published", loads)
        self.assertNotIn("ASIC", loads)


if __name__ == "__main__":
    unittest.main()
