# SPDX-License-Identifier: BSD-2-Clause
"""bench/lib_gate.py, with readings of our own in place of the gauge's, and
bench/lib_table.py, bench/run, bench/lib_hosts.py, bench/hosts and bench/scale,
with results of our own."""

import argparse
import csv
import io
import os
import subprocess
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

import lib_bench                        # noqa: E402
import lib_gate                         # noqa: E402
import lib_hosts                        # noqa: E402
import lib_table                        # noqa: E402


def program(name):
    """A runner as a module: its name has no .py."""
    loader = SourceFileLoader("bench_" + name, os.path.join(TOP, "bench",
                                                            name))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


RUN = os.path.join(TOP, "bench", "run")
HOSTS = os.path.join(TOP, "bench", "hosts")
SCALE = os.path.join(TOP, "bench", "scale")
run, hosts, scale = map(program, ("run", "hosts", "scale"))

NEAR, FAR, THREADS = 105, 520, 53       # ns; two threads of one core


class Session:
    """A gate, the readings that it will see, and what it lets happen."""

    def __init__(self, readings, tries=3, patience=4, status="ok",
                 known=0):
        self.readings = iter([NEAR] * 2 * known + readings)
        self.looks = self.runs = 0
        self.status = status
        self.told = io.StringIO()
        # a look takes a second, and so does a run
        self.gate = lib_gate.Gate(lambda: next(self.readings), self.look,
                                  tries, patience,
                                  lambda: self.looks + self.runs)
        for _ in range(known):          # runs of before
            self.job()
        self.looks = self.runs = 0

    def look(self):
        self.looks += 1
        return 0.25

    def once(self):
        self.runs += 1
        return self.status, self.runs

    def job(self):
        with redirect_stderr(self.told):
            self.made, self.fields = self.gate.run(self.once)
        return self.fields

    def doubt(self):
        return lib_gate.row_doubt(self.fields, self.gate.nearest)


class TestGate(unittest.TestCase):
    def test_near(self):
        s = Session([NEAR + 10, NEAR, NEAR, NEAR + 10], known=1)
        s.job()
        s.job()
        self.assertEqual((s.runs, s.made, s.doubt()), (2, ("ok", 2), ""))
        self.assertEqual(s.fields, {"before": "105.0", "after": "115.0",
                                    "nearest": "115.0", "busy": "0.25"})
        self.assertEqual(s.told.getvalue(), "")

    def test_moved(self):
        """Away, then back, while it runs: the third run counts."""
        s = Session([NEAR, FAR, NEAR, FAR, NEAR, NEAR])
        s.job()
        self.assertEqual((s.made, s.doubt()), (("ok", 3), ""))
        self.assertEqual(s.told.getvalue().count("moved, again"), 2)

    def test_moved_inside(self):
        """Away and back within a run, which has seen it."""
        s = Session([NEAR] * 4)
        inside = iter([[NEAR, FAR], [NEAR - 1, NEAR + 3]])
        with redirect_stderr(s.told):
            made, fields = s.gate.run(s.once, lambda made: next(inside))
        self.assertEqual((made, fields["after"]), (("ok", 2), "108.0"))
        self.assertEqual(s.told.getvalue().count("moved, again"), 1)

    def test_moved_always(self):
        s = Session([NEAR, FAR] * 9)
        s.job()
        self.assertEqual((s.runs, s.doubt()), (3, "moved"))
        self.assertIn("kept with a mark", s.told.getvalue())

    def test_waits(self):
        """It does not run while it is far, and says once that it waits."""
        s = Session([FAR, FAR, FAR, NEAR, NEAR], known=2)
        s.job()
        self.assertEqual((s.runs, s.looks, s.doubt()), (1, 4, ""))
        self.assertEqual(s.told.getvalue().count("waiting"), 1)

    def test_waits_no_more(self):
        """Patience is that of the session; behind it one run each."""
        s = Session([FAR] * 99, known=2)
        for _ in range(3):
            s.job()
        self.assertEqual((s.runs, s.looks, s.doubt()), (3, 7, "far"))

    def test_repeats_no_more(self):
        """Repeated runs use up the patience of the session, too."""
        s = Session([NEAR, FAR] * 9, tries=8)
        s.job()
        s.job()
        self.assertEqual((s.runs, s.doubt()), (6, "moved"))

    def test_no_other_turn(self):
        """Nor does the end of the session take longer than it may."""
        s = Session([FAR] * 4 + [NEAR] * 8, patience=1)
        s.gate.in_turn([s.job, s.job, s.job])
        self.assertEqual(s.runs, 4)

    def test_nearer_later(self):
        """All looked well, but it was far: another turn for the first."""
        s = Session([FAR] * 4 + [NEAR] * 8)
        s.gate.in_turn([s.job, s.job, s.job])
        self.assertEqual((s.runs, s.doubt()), (6, ""))
        self.assertEqual(s.told.getvalue().count("nearer, again"), 1)

    def test_nearer_for_a_moment(self):
        """One run, or one reading, does not make a placement."""
        s = Session([THREADS, NEAR, THREADS, THREADS, NEAR, NEAR], known=2)
        s.job()
        self.assertEqual((s.runs, s.doubt(), s.gate.nearest), (3, "", NEAR))

    def test_nearer_at_first(self):
        s = Session([THREADS] * 2 + [NEAR] * 8)
        s.gate.in_turn([s.job, s.job, s.job])
        self.assertEqual((s.runs, s.looks, s.doubt()), (4, 4, ""))

    def test_failed(self):
        """A failed run has no figures, so it is not repeated."""
        s = Session([NEAR, FAR], status="failed: exit 1")
        s.gate.in_turn([lambda: s.job() and None])
        self.assertEqual(s.runs, 1)

    def test_no_gauge(self):
        s = Session([None] * 2)
        s.gate.in_turn([s.job])
        self.assertEqual((s.runs, s.doubt()), (1, "not gauged"))

    def test_busy(self):
        self.assertGreaterEqual(lib_gate.look(0.05), 0)


def csv_of(rows):
    """A file of rows that say what is not usual in them."""
    f = tempfile.NamedTemporaryFile("w", suffix=".csv")
    out = csv.DictWriter(f, lib_bench.FIELDS)
    out.writeheader()
    for row in rows:
        out.writerow({"metric": "m", "ranks": 2, "size": 8, "unit": "us",
                      "rep": 1, "status": "ok", "set": "core",
                      "profile": "host", **row})
    f.flush()
    return f


def loaded(rows, kind):
    with csv_of(rows) as f:
        return lib_bench.load([f.name], kind)["host"]


class TestRows(unittest.TestCase):
    def load(self, readings, unit):
        """One value for each (rep, before, after, nearest)."""
        return loaded([{"peer": "p", "value": i, "unit": unit, "rep": rep,
                        **dict(zip(lib_gate.GATE_FIELDS, gate))}
                       for i, (rep, *gate) in enumerate(readings)],
                      lib_bench.Results)

    def shown(self, readings, unit="ns"):
        res = self.load(readings, unit)
        return res.median("m", "p", 2, 8), res.mark("m", "p", 2, 8)

    def test_counts(self):
        self.assertEqual(self.shown([(1, NEAR, NEAR, NEAR)]), (0, ""))

    def test_only_what_counts(self):
        self.assertEqual(self.shown([(1, FAR, FAR, FAR),
                                     (2, NEAR, NEAR, NEAR)]), (1, ""))

    def test_marked(self):
        """Rows that moved; and of one placement, if others are of another."""
        self.assertEqual(self.shown([(1, NEAR, FAR, NEAR)]), (0, " *"))
        rows = [{"peer": peer, "value": 1, "unit": "ns",
                 **dict(zip(lib_gate.GATE_FIELDS, (ns, ns, NEAR)))}
                for peer, ns in (("p", FAR), ("q", NEAR), ("r", NEAR))]
        res = loaded(rows, lib_bench.Results)
        self.assertEqual([res.mark("m", peer, 2, 8) for peer in "pqr"],
                         [" *", "", ""])

    def test_far_for_most_of_the_time(self):
        """Then these are compared, and the few near ones are left out."""
        self.assertEqual(self.shown([(1, NEAR, NEAR, NEAR),
                                     (2, FAR, FAR, NEAR),
                                     (3, FAR + 9, FAR, NEAR)]), (1.5, ""))

    def test_three_placements(self):
        """The one between two others does not make one of them."""
        self.assertEqual(self.shown([(1, 105, 105, 105), (2, 105, 106, 105),
                                     (3, 155, 155, 105), (4, 230, 230, 105),
                                     (5, 231, 230, 105)]), (1, ""))

    def test_no_other_turn_counts(self):
        """A row that is compared is not replaced by one that is not."""
        self.assertEqual(self.shown([(1, FAR, FAR, FAR), (2, FAR, FAR, FAR),
                                     (3, FAR, FAR, FAR),
                                     (1, NEAR, NEAR, NEAR)]), (1, ""))

    def test_counted(self):
        """Wrong words and bytes are so in any placement."""
        for unit in ("words", "KiB"):
            self.assertEqual(self.shown([(1, NEAR, NEAR, NEAR),
                                         (2, FAR, FAR, NEAR)], unit),
                             (0.5, ""))

    def test_nearer(self):
        """Of two equally frequent ones, the file's last word holds."""
        self.assertEqual(self.shown([(1, THREADS, THREADS, THREADS),
                                     (2, NEAR, NEAR, NEAR)]), (1, ""))

    def test_another_turn(self):
        self.assertEqual(self.shown([(1, FAR, FAR, FAR),
                                     (1, NEAR, NEAR, NEAR)]), (1, ""))

    def test_old_file(self):
        self.assertEqual(self.shown([(1,), (2,)]), (0.5, ""))


class TestTable(unittest.TestCase):
    """Of two peers the better one counts, and no failure is silent."""

    def results(self, own, shm, tcp, unit="us", gate=(NEAR, NEAR, NEAR),
                far=None, status="failed: exit 1", more=()):
        """far: the peer whose figure does not count."""
        rows = [{"peer": peer, "unit": unit, **dict(zip(
            lib_gate.GATE_FIELDS, gate))} for peer in
            ("unimem", "ofi-shm", "ofi-tcp")]
        for row, value in zip(rows, (own, shm, tcp)):
            row.update({"value": value} if value is not None else
                       {"size": "", "status": status})
            if row["peer"] == far:
                row["after"] = FAR
        return loaded(rows + list(more), lib_table.Compared)

    def line(self, *values, **more):
        res = self.results(*values, **more)
        line, = res.lines()
        return (line.best, line.verdict, lib_table.reached(res),
                "RUNS OF UNIMEM FAILED" in lib_table.summary(res))

    def test_less_is_better(self):
        self.assertEqual(self.line(1, 2, 3), ("ofi-shm", "ahead", True, False))
        self.assertEqual(self.line(1, 2, 3, unit="M/s"),
                         ("ofi-tcp", "behind", False, False))

    def test_goal(self):
        """One line may be behind, but not far."""
        self.assertEqual(self.line(1.02, 2, 1)[1:3], ("level", True))
        self.assertEqual(self.line(1.15, 2, 1)[1:3], ("behind", True))
        self.assertEqual(self.line(1.25, 2, 1)[1:3], ("behind", False))

    def test_peer_failed(self):
        """It is named, and the other peer counts."""
        res = self.results(1, None, 2)
        self.assertEqual(self.line(1, None, 2)[:3],
                         ("ofi-tcp", "ahead", False))
        self.assertIn("; 1 line lacks a peer: ofi-shm.",
                      lib_table.summary(res))
        self.assertIn("ofi-shm: failed: exit 1", lib_table.text_table(res))
        self.assertIn("ofi-shm: failed: exit 1", lib_table.block(res))

    def test_wrong_data(self):
        """Figures of a peer from before it moved wrong data do not count."""
        res = self.results(2, 1, 3)
        self.assertEqual(res.lines()[0].best, "ofi-shm")
        res.add({**res.rows[-1], "peer": "ofi-shm", "value": "",
                 "metric": res.rows[-1].get("run") or res.rows[-1]["metric"],
                 "status": "failed: wrong data"})
        res.settle()
        self.assertEqual(res.lines()[0].best, "ofi-tcp")

    def test_own_failed(self):
        self.assertEqual(self.line(None, 1, 2),
                         ("ofi-shm", "open", False, True))

    def test_no_peer(self):
        self.assertEqual(self.line(1, None, None),
                         (None, "open", False, False))

    def test_doubted(self):
        """A ratio of figures that do not count is no verdict."""
        res = self.results(1, 2, 3, gate=(NEAR, FAR, NEAR))
        self.assertEqual(res.lines()[0].verdict, "open")
        self.assertIn(" *", lib_table.text_table(res))

    def test_one_peer_doubted(self):
        """It may be the best one, unless unimem is behind another already."""
        far = {"far": "ofi-shm"}
        for values in ((1, 2, 3), (1, 9, 3), (2, 1, 3)):
            self.assertEqual(self.line(*values, **far),
                             ("ofi-tcp", "open", False, False))
        self.assertEqual(self.line(2, 9, 1, **far)[:2], ("ofi-tcp", "behind"))
        cells = self.results(1, 2, 3, **far).lines()[0].cells()
        self.assertIn("ofi-tcp, ofi-shm *", cells)
        self.assertEqual(self.line(1, 2, 3, far="unimem")[1], "open")

    def test_not_positive(self):
        """A difference of memories may be no size at all."""
        for values in ((-1, 1, 2), (0, 1, 2), (1, -2, 2), (1, 0, 2)):
            self.assertEqual(self.line(*values, unit="KiB")[1:3],
                             ("open", False))
            self.assertEqual(self.results(*values).lines()[0].cells()[7], "")

    def test_not_offered(self):
        """No peer is missing where it cannot take part."""
        no = {"status": "unavailable: not offered"}
        self.assertEqual(self.line(1, None, 2, **no)[:3],
                         ("ofi-tcp", "ahead", True))
        self.assertNotIn("lack", lib_table.summary(
            self.results(1, None, 2, **no)))

    def test_peer_lacks_a_line(self):
        """It has others, so that the goal may be reached."""
        res = self.results(1, None, 2, more=[
            {"metric": "other", "peer": p, "value": 1} for p in
            ("unimem", "ofi-shm")])
        self.assertIn("2 lines: 1 ahead, 1 level, 0 behind; "
                      "1 line lacks a peer: ofi-shm.", lib_table.summary(res))
        self.assertTrue(lib_table.reached(res))

    def test_hal_failed(self):
        res = self.results(1, 2, 3, more=[
            {"metric": "hal", "peer": "-", "status": "failed: exit 1"}])
        self.assertEqual(res.own_failed(), ["hal"])

    def test_foreign(self):
        """Rows of peers that no one knows are no lines."""
        res = loaded([{"peer": "other", "value": 1}], lib_table.Compared)
        self.assertEqual((res.lines(), lib_table.reached(res)), ([], False))

    def test_large_ratio(self):
        self.assertEqual(self.results(1, 1690, 2000).lines()[0].cells()[7],
                         "1,690")

    def test_line(self):
        """Where the cores were stands beside the figures."""
        self.assertEqual(self.results(1, 2, 3).lines()[0].cells()[-1],
                         "%d, %d" % (NEAR, NEAR))

    def test_summary(self):
        self.assertTrue(lib_table.summary(self.results(1.25, 2, 1)).startswith(
            "1 line: 0 ahead, 0 level, 1 behind (the worst by 1.25)"))


class Twice:
    """A gate that has every run made twice."""

    def run(self, once):
        once()
        return once(), dict.fromkeys(lib_gate.GATE_FIELDS, "")


class TestRun(unittest.TestCase):
    """bench/run, without a program of the peers."""

    def tries(self, *statuses):
        """The text of the rows after runs with these statuses."""
        metric, peer = run.METRICS[0], run.peers()[-1]
        bench = run.Bench.__new__(run.Bench)
        bench.opts = argparse.Namespace(cores="0,1", quick=False, timeout=1)
        bench.constant = {"cores": 2}
        bench.profile, bench.gate, bench.gave_up = "host", Twice(), {}
        rows = []
        bench.write = lambda **row: rows.append(row["status"])
        made = [(s, "8 1.5\n", "", 0.1) for s in statuses]
        with mock.patch.object(run, "execute", side_effect=made), \
                redirect_stdout(io.StringIO()):
            bench.one(peer, metric, 1)
        return rows

    def test_every_try(self):
        """A failure does not vanish because the run was made again."""
        self.assertEqual(self.tries("ok", "ok"), ["ok"])
        self.assertEqual(self.tries("failed: exit 1", "ok"),
                         ["failed: exit 1, then ok", "ok"])
        self.assertEqual(self.tries("ok", "failed: exit 3"),
                         ["ok", "failed: wrong data"])

    def call(self, *words):
        r = subprocess.run([RUN, *words], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, check=False)
        return r.returncode, r.stderr.strip().splitlines()[-1:]

    def test_doc_of_a_part(self):
        """A whole session in the document is not replaced by a part."""
        with tempfile.TemporaryDirectory() as folder:
            doc = os.path.join(folder, "x.md")
            for words in (["--only", "latency"], ["--peers", "unimem"]):
                self.assertEqual(self.call(*words, "--doc", doc)[0], 2)
            for name in ("part", "quick part"):
                with csv_of([{"peer": "unimem", "value": 1,
                              "set": name}]) as f:
                    status, told = self.call("--from", f.name, "--doc", doc)
                self.assertEqual(status, 1)
                self.assertIn("no part", told[0])
            self.assertEqual(os.listdir(folder), [])

    def test_no_rows(self):
        with csv_of([]) as f:
            status, told = self.call("--from", f.name)
        self.assertEqual((status, told), (1, ["bench/run: no rows in "
                                              + f.name]))

    def test_goal_of_host(self):
        """Other profiles are emulations that are slow on purpose."""
        row = {"peer": "unimem", "value": 1}
        for profile, status in (("host", 3), ("exanode", 0)):
            with csv_of([{**row, "profile": profile}]) as f:
                self.assertEqual(self.call("--from", f.name)[0], status)


def measured(metric="latency", own=1, other=1, unit="us", **more):
    """Rows of unimem and of what it is compared with; lists: repetitions."""
    return [{"metric": metric, "peer": peer, "unit": unit, "value": value,
             "rep": rep, **more}
            for peer, values in ((lib_hosts.OWN, own),
                                 (lib_hosts.GOALS[metric][0], other))
            for rep, value in enumerate(
                values if isinstance(values, list) else [values])
            if value is not None]


class TestHosts(unittest.TestCase):
    """The table of bench/hosts, and its exit code."""

    def line(self, *values, **more):
        res = loaded(measured(*values, **more), lib_hosts.Hosts)
        line, = res.lines()
        return line.reached

    def code(self, *rows):
        """(exit code, last line) for the rows of a file."""
        with csv_of([r for some in rows for r in some]) as f:
            r = subprocess.run([HOSTS, "--from", f.name], text=True,
                               stdout=subprocess.PIPE, check=False)
        return r.returncode, r.stdout.strip().splitlines()[-1]

    def test_latency(self):
        self.assertEqual(self.line("latency", 1.1, 1), "yes")
        self.assertEqual(self.line("latency", 1.11, 1), "no")
        self.assertEqual(self.line("barrier", 1.11, 1), "no")

    def test_bandwidth(self):
        self.assertEqual(self.line("bandwidth", 95, 100, "MB/s"), "yes")
        self.assertEqual(self.line("bandwidth", 94, 100, "MB/s"), "no")

    def test_start(self):
        """Within what the job without hosts itself took, but for its longest
        repetition."""
        alone = [10, 11, 10, 12, 50]
        self.assertEqual(self.line(lib_hosts.START, [9, 12, 13], alone, "ms"),
                         "yes")
        self.assertEqual(self.line(lib_hosts.START, [9, 13, 13], alone, "ms"),
                         "no")
        self.assertEqual(self.line(lib_hosts.START, 5, 5, "ms"), "yes")
        self.assertEqual(self.line(lib_hosts.START_TWO, 99, 1, "ms"), "")

    def test_open(self):
        """Without the other figure, or if either does not count."""
        self.assertEqual(self.line("latency", 1, None), "open")
        self.assertEqual(self.line("latency", None, 1), "open")
        self.assertEqual(self.line("latency", 1, 1, before=NEAR, after=FAR,
                                   nearest=NEAR), "open")

    def test_code(self):
        self.assertEqual(self.code(measured())[0], 0)
        self.assertEqual(self.code(measured(own=2)), (
            3, "The goal is missed: latency, 8 B."))
        self.assertEqual(self.code(measured(other=None)), (
            3, "The goal is missed: latency, 8 B (open)."))
        for part in ("quick core", "part"):
            self.assertEqual(self.code(measured(own=2, set=part))[0], 0)

    def test_own_failed(self):
        bad = {"metric": "x", "peer": lib_hosts.ALONE, "size": "",
               "status": "failed: exit 1"}
        self.assertEqual(self.code(measured(), [bad])[0], 1)
        bad["peer"] = lib_hosts.UCX
        self.assertEqual(self.code(measured(), [bad])[0], 0)

    def test_flat(self):
        """Bytes on the cable are no question of time: --quick fails, too."""
        name = lib_hosts.CABLE % "bcast"
        for gate in ((NEAR, NEAR, NEAR), (FAR, FAR, NEAR)):
            for own, code in ((75, 0), (76, 1)):
                self.assertEqual(self.code(measured(
                    name, own, 100, "KiB", set="quick core",
                    **dict(zip(lib_gate.GATE_FIELDS, gate))))[0], code)

    def test_flat_open(self):
        """It fails, unless a part of a session lacks the other figure."""
        name = lib_hosts.CABLE % "bcast"
        for own, other, part, code in (
                (75, 0, "core", 1), (75, 0, "part", 1), (75, None, "core", 1),
                (75, None, "part", 0), (None, 100, "part", 0)):
            self.assertEqual(self.code(measured(
                name, own, other, "KiB", set="quick " + part))[0], code)

    def test_engines(self):
        """They are a table of their own."""
        res = loaded([{"metric": lib_hosts.PACKET, "peer": peer, "value": i,
                       "size": 64} for i, peer in
                      enumerate(lib_hosts.ENGINES[:2], 1)], lib_hosts.Hosts)
        self.assertEqual(res.lines(), [])
        self.assertIn("| packet | 64 B | 1.00 | 2.00 | - |",
                      lib_hosts.engines(res))

    def test_every_metric_has_a_goal(self):
        """Or is in the table of engines."""
        for m in hosts.METRICS:
            names = m.collectives().split(",") if m.setting else [""]
            for name in names:
                label = m.label.replace("%s", name)
                self.assertIn(label, {**lib_hosts.GOALS, lib_hosts.PACKET: 0,
                                      lib_hosts.TRANSFER: 0})
                self.assertIn(lib_hosts.GOALS.get(label, m.peers)[0], m.peers)

    def test_perftest(self):
        """Latency, and bandwidth in MB/s."""
        text = "Final:  100  4.5  4.7  4.8  11.5  12.0  99 98\n"
        latency, bandwidth = hosts.METRICS[:2]
        self.assertEqual(hosts.Perftest.values(text, latency), [4.8])
        self.assertAlmostEqual(hosts.Perftest.values(text, bandwidth)[0],
                               12 * 1.048576)


class TestScale(unittest.TestCase):
    """Points that the formulae do not give are reported."""

    def told(self, change):
        rows = scale.read_rows(scale.POINTS)
        row = next(r for r in rows if r["limit"] != "0" and
                   r["hosts"] == "16" and r["pattern"] == "alltoall")
        for field, add in change.items():
            row[field] = str(float(row[field]) + add)
        with redirect_stdout(io.StringIO()) as out:
            code = scale.verdict(rows)
        return code, out.getvalue()

    def test_points(self):
        self.assertEqual(self.told({}), (0, ""))

    def test_memory(self):
        code, text = self.told({"kib": 1000})
        self.assertEqual(code, 1)
        self.assertIn("memory of 16 x 4 alltoall 8", text)

    def test_descriptors(self):
        code, text = self.told({"fds": 30})
        self.assertEqual(code, 1)
        self.assertIn("descriptors of 16 x 4 alltoall 8", text)

    def without(self, hosts):
        """The stored points without such jobs without messages, as a file."""
        rows = [r for r in scale.read_rows(scale.POINTS)
                if r["pattern"] != "none" or r["hosts"] not in hosts]
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
            out = csv.DictWriter(f, scale.FIELDS)
            out.writeheader()
            out.writerows(rows)
            f.flush()
            r = subprocess.run([SCALE, "--from", f.name], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               check=False)
        return r.returncode, r.stdout, r.stderr

    def test_no_constants(self):
        """Points are left out, and named, if what they need has failed."""
        code, text, _ = self.without(["16"])
        self.assertEqual(code, 1)
        self.assertIn("| 8 x 4 |", text)
        self.assertNotIn("| 16 x 4 |", text)
        self.assertIn("Points without their job without messages: "
                      "16 x 4 alltoall -;", text)
        code, _, errors = self.without(["2", "4", "8", "16"])
        self.assertEqual((code, len(errors.splitlines())), (1, 1))

    def test_no_mpich(self):
        """It ends at once, without a file of points."""
        def broken(peers):
            peers[0].broken = "no mpicc"
        with mock.patch.object(scale, "prepare", broken), \
                mock.patch.object(scale, "become_reaper"), \
                self.assertRaisesRegex(SystemExit, "no mpicc"):
            scale.measure(None, [], "/dev/null/x")


class TestLeftBehind(unittest.TestCase):
    def test_named_memory(self):
        """Only segments that are ours, without an owner, and new."""
        gone = subprocess.Popen(["true"])
        gone.wait()
        names = {"%d:0:0" % gone.pid, "%d" % os.getpid(), "other",
                 "vader_segment.x", "ucx_shm_old"}
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(lib_bench, "SHM", folder):
            for name in names:
                with open(os.path.join(folder, name), "w"):
                    pass
            with mock.patch.object(os, "geteuid", lambda: 12345):
                lib_bench.remove_named_memory(set())
            self.assertEqual(set(os.listdir(folder)), names)
            lib_bench.remove_named_memory({"ucx_shm_old"})
            self.assertEqual(set(os.listdir(folder)),
                             {"%d" % os.getpid(), "other", "ucx_shm_old"})
            with mock.patch.object(os, "unlink", side_effect=OSError):
                lib_bench.remove_named_memory(set())

    def test_caller_of_sourced(self):
        """Variables that the caller has sourced itself are set again."""
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as f:
            f.write("export FI_X=1\n")
            f.flush()
            with mock.patch.dict(os.environ, FI_X="1"):
                self.assertEqual(lib_bench.sourced(
                    f.name, {"PATH": os.environ["PATH"]}), {"FI_X": "1"})

    def test_foreign(self):
        for name in ("UNM_COLL", "UNM_RMA_WIN", "MPIR_CVAR_X", "FI_PROVIDER"):
            self.assertTrue(lib_bench.FOREIGN.match(name))


if __name__ == "__main__":
    unittest.main()
