#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the counts of run-mpich, run-fabtests and at-once.sh: passed, failed,
skipped.

Shell scripts stand for the suites' programs and for mpiexec. A failure that a
list names is counted as skipped only if it is the assertion that the list
names; a hang, a process left behind or another assertion is a failure.

A test that is skipped is a line "skip CLASS_NAME (REASON)", without the name's
"test_", for test/skips.txt.
"""
import argparse
import contextlib
import ctypes
import glob
import importlib.machinery
import importlib.util
import io
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

ASSERTION = 'echo "Failed to cancel send"; echo " Found 1 errors"; '
PROGRAMS = {
    "good": "echo ' No Errors'",
    "named": ASSERTION + "exit 1",
    "other": ASSERTION + "echo 'wrong data'; exit 1",
    "silent": "exit 1",
    "hung": ASSERTION + "sleep 100",
    "left": ASSERTION + "sleep 100 </dev/null >/dev/null & exit 1",
}


def load(name):
    """A runner as a module: its name has no .py."""
    path = os.path.join(HERE, name)
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"),
                                                  path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def script(path, text):
    with open(path, "w") as out:
        out.write("#!/bin/sh\n%s\n" % text)
    os.chmod(path, 0o755)


class Base(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="unimem-runners-")
        self.addCleanup(work.cleanup)
        self.work = work.name
        # its reports go there, too
        for name in ("lib_run", "lib_lanes", "run_mpich", "run_fabtests"):
            sys.modules.pop(name, None)
        os.environ["UNIMEM_BUILD"] = self.work

    def told(self, run):
        """{test: "ok", "not ok" or "skip"} of what run() prints"""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            run()
        return {name: kind for kind, name in re.findall(
            r"^(ok|not ok|skip) - (.*?)(?: #.*)?$", out.getvalue(), re.M)}


class Mpich(Base):
    def runner(self, chosen="quick"):
        module = load("run-mpich")
        for folder in ("bin", "pt2pt"):
            os.makedirs(os.path.join(self.work, folder), exist_ok=True)
        script(os.path.join(self.work, "bin", "mpiexec"),
               'shift 2; exec "$@"')
        for name, text in PROGRAMS.items():
            script(os.path.join(self.work, "pt2pt", name), text)
        args = argparse.Namespace(prov="tcp", mpi=self.work, set=chosen,
                                  timeout=1, dirs=["pt2pt"], match="",
                                  ranks=None, hosts=None,
                                  lanes=1, system_libfabric=False)
        runner = module.Runner(args, {"suite": self.work}, None)
        self.addCleanup(runner.jail.close)
        clear = runner.jail.clear
        runner.jail.clear = lambda grace=0: clear(min(grace, 0.2))
        return module, args, runner

    def results(self, names, chosen="quick", xfail="", slow=""):
        module, _, runner = self.runner(chosen)
        runner.xfail = [(xfail, ("Failed to cancel send", "because"))]
        runner.slow = [(slow, "long")]
        cases = [module.Case("pt2pt", [name, "1"]) for name in names]
        return self.told(lambda: runner.everything(cases, []))

    def test_an_expected_failure_is_its_assertion(self):
        got = self.results(PROGRAMS, xfail="pt2pt/*")
        want = dict.fromkeys(PROGRAMS, "not ok")
        want.update(good="ok", named="skip")
        self.assertEqual(got, {"pt2pt/%s 1" % k: v for k, v in want.items()})

    def test_what_no_list_names_fails(self):
        self.assertEqual(self.results(["good", "named"]), {
            "pt2pt/good 1": "ok", "pt2pt/named 1": "not ok"})

    def test_what_is_left_out_is_counted(self):
        self.assertEqual(self.results(["good"], slow="pt2pt/good *"),
                         {"pt2pt/good 1": "skip"})
        with open(os.path.join(self.work, "pt2pt", "testlist"), "w") as out:
            out.write("good 1\n")
        with open(os.path.join(self.work, "pt2pt", "testlist.dtp"),
                  "w") as out:
            out.write("good 2\ngood 3\n")
        generated, rest = ("pt2pt/testlist.dtp", 2), ("pt2pt/testlist", 1)
        for chosen, others, tests in (
                ("quick", [generated], 1), ("whole", [generated], 1),
                ("full", [], 3), ("generated", [rest], 2)):
            module, args, runner = self.runner(chosen)
            suite = {"suite": self.work}
            left = list(module.left_out(args, suite))
            self.assertEqual(left, others)
            runner.slow = []
            got = self.told(lambda: runner.everything(
                module.cases_of(args, suite), left))
            self.assertEqual(sorted(got.values()),
                             ["ok"] * tests + ["skip"] * len(others))

    def test_thinned_lists_are_even_and_counted(self):
        module = load("run-mpich")
        cases = [module.Case(folder, ["p%d" % i]) for folder, count in
                 (("pt2pt", 400), ("coll", 400), ("rma", 2)) for i in
                 range(count)]
        kept, rest = module.thinned(cases, (4, 0), lambda case: True)
        self.assertEqual(kept,
                         module.thinned(cases, (4, 0), lambda _: True)[0])
        for folder, count in (("pt2pt", 400), ("coll", 400), ("rma", 2)):
            mine = len([c for c in kept if c.folder == folder])
            self.assertIn(mine, range(max(1, count // 6),
                                      max(2, count // 3) + 1))
            self.assertEqual(dict(rest).get("%s/testlist, thinned" % folder,
                                            0), count - mine)
        self.assertEqual(module.thinned(cases, (1, 0), lambda _: True),
                         (cases, []))
        # the shares are all cases together
        self.assertEqual({case for rest in range(4) for case in
                          module.thinned(cases, (4, rest), lambda _: True)[0]},
                         set(cases))
        # those that do not run anyway stay, each with its own reason
        kept, rest = module.thinned(cases, (4, 0), lambda c: c.folder == "rma")
        self.assertGreaterEqual(len(kept), 801)

    def test_a_share_has_a_number_below_its_part(self):
        share = load("lib_run.py").share
        environ = unittest.mock.patch.dict(os.environ, UNM_TEST_SHARE="")
        environ.start()
        self.addCleanup(environ.stop)
        self.assertEqual((share("4"), share("4/3")), ((4, 0), (4, 3)))
        for text in ("0", "4/4", "4/", "-1", "a"):
            self.assertRaises(ValueError, share, text)
        os.environ["UNM_TEST_SHARE"] = "6"
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual([share(text) for text in ("4/1", "4/2", "1")],
                             [(4, 3), (4, 0), (1, 0)])
        self.assertIn("--thin 4/2 is 4/0", out.getvalue())

    def test_thinned_fabtests_are_all_of_them(self):
        module = load("run-fabtests")

        def chosen(thin):
            return module.selection(argparse.Namespace(
                set="quick", hosts=False, match="", thin=thin))

        whole, left = chosen((1, 0))
        shares = [chosen((3, rest)) for rest in range(3)]
        self.assertEqual(left, 0)
        self.assertCountEqual([test for mine, _ in shares for test in mine],
                              whole)
        for mine, left in shares:
            self.assertEqual(len(mine) + left, len(whole))

    def test_only_missing_programs_are_built(self):
        module = load("run-mpich")
        made = []
        module.run = lambda log, argv, cwd: made.append((argv[3:], cwd))
        # its lock and log are beside it
        suite = os.path.join(self.work, "suite")
        os.makedirs(os.path.join(suite, "pt2pt"))
        script(os.path.join(suite, "pt2pt", "there"), "exit 0")
        cases = [module.Case("pt2pt", [name, ranks]) for name in
                 ("there", "b", "a") for ranks in ("2", "4")]
        with contextlib.redirect_stdout(io.StringIO()):
            module.build_programs(suite, cases)
            self.assertEqual(made, [(["a", "b"], os.path.join(
                suite, "pt2pt"))])
            module.build_programs(suite, cases[:2])
        self.assertEqual(len(made), 1)

    def test_slow_tests_run_in_the_other_sets(self):
        self.assertTrue(self.runner("quick")[2].slow)
        for chosen in ("whole", "full"):
            self.assertEqual(self.runner(chosen)[2].slow, [])

    def test_ranks_are_spread_over_hosts(self):
        module, _, runner = self.runner()
        runner.hosts = [("10.0.0.1", 1), ("10.0.0.2", 2)]
        for ranks, each in ((2, 1), (5, 3), (8, 4)):
            tool, host, command = runner.command(
                module.Case("pt2pt", ["good", str(ranks), "arg=a b"]))
            self.assertEqual((os.path.basename(tool), host),
                             ("on-host", "10.0.0.1"))
            self.assertIn(" -hosts 10.0.0.1:%d,10.0.0.2:%d " % (each, each),
                          command)
            self.assertIn(" -n %d " % ranks, command)
            self.assertTrue(command.endswith("/pt2pt/good 'a b'"), command)


class Fabtests(Base):
    def verdict(self, done, codes, left, listed=True):
        module = load("run-fabtests")
        args = argparse.Namespace(prov="unimem", set="all", timeout=1,
                                  hosts=False)
        runner = module.Runner(args, self.work, None)
        self.addCleanup(runner.jail.close)
        runner.reasons = [("fi_x", "because")] if listed else []
        outputs = [("fi_x", "")] * len(codes)
        return self.told(lambda: runner.verdict(
            "fi_x", 1, (done, codes, outputs, left)))["fi_x"]

    def test_a_listed_test_ends_as_not_run(self):
        self.assertEqual(self.verdict(True, [61, 61], 0), "skip")
        self.assertEqual(self.verdict(True, [61, 61], 0, False), "not ok")
        self.assertEqual(self.verdict(True, [0, 0], 0, False), "ok")

    def test_a_listed_test_that_does_otherwise_fails(self):
        for done, codes, left in (
                (True, [0, 0], 0),          # passes by now
                (True, [61, 1], 0),         # another error
                (True, [-11, 61], 0),       # a crash
                (False, [61, -9], 0),       # a hang
                (False, [61, None], 0),
                (True, [61, 61], 1)):       # a process left behind
            self.assertEqual(self.verdict(done, codes, left), "not ok")

    def test_parts_of_a_unit_test(self):
        module = load("run-fabtests")
        for why, good in (
                ("skipped because fi_getinfo returned 61 - No data", True),
                ("requires unsupported feature x", True),
                ("FAIL ordering", False), ("no verdict", False)):
            self.assertEqual(bool(module.NOT_SUPPORTED.match(why)), good)

    def everything(self, lanes):
        """Exit codes and verdicts of a run of scripts."""
        module = load("run-fabtests")
        unit = os.path.join(self.work, "src", "unit")
        os.makedirs(unit, exist_ok=True)
        os.makedirs(os.path.join(self.work, "src", "ubertest"), exist_ok=True)
        for code in (0, 1, 61):
            script(os.path.join(unit, "fi_%d" % code), "exit %d" % code)
        script(os.path.join(self.work, "src", "ubertest", "fi_ubertest"),
               "echo 'Success : 3'; for e in ENODATA ENOSYS EIO ERROR; do "
               "echo \"$e : 0\"; done")
        module.EXCLUDE = os.path.join(self.work, "exclude")
        with open(module.EXCLUDE, "w") as out:
            out.write("fi_61 listed: because\n")
        args = argparse.Namespace(prov="unimem", set="all", timeout=60,
                                  lanes=lanes, hosts=False)
        wanted = [("one", "fi_0 -a"), ("one", "fi_1"), ("one", "fi_61"),
                  ("one", "fi_61 listed"), ("neg", "fi_61 no data"),
                  ("uber", "quick")]
        codes = []
        told = self.told(lambda: codes.append(
            module.everything(args, wanted, self.work, None)))
        return codes, told

    def pair(self, alone):
        """The verdict of a pair whose server finds its port taken once."""
        module = load("run-fabtests")
        unit = os.path.join(self.work, "src", "unit")
        os.makedirs(unit, exist_ok=True)
        ran = os.path.join(self.work, "ran")
        script(os.path.join(unit, "fi_once"),
               "[ ! -e %s ] || exit 0; : >%s; echo Address already in use; "
               "exit 98" % (ran, ran))
        args = argparse.Namespace(prov="unimem", set="all", timeout=60,
                                  hosts=False)
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("UNM_ALONE", None)
            if alone:
                os.environ["UNM_ALONE"] = "1"
            runner = module.Runner(args, self.work, None)
        self.addCleanup(runner.jail.close)
        return self.told(lambda: runner.pair("fi_once"))["fi_once"]

    def test_another_try_where_others_take_ports(self):
        self.assertEqual(self.pair(False), "ok")

    def test_no_other_try_in_a_network_of_its_own(self):
        self.assertEqual(self.pair(True), "not ok")

    WANT = {"fi_0 -a": "ok", "fi_1": "not ok", "fi_61": "not ok",
            "fi_61 listed": "skip", "fi_61 no data": "ok",
            "fi_ubertest quick": "ok"}

    def test_one_after_another(self):
        codes, told = self.everything(1)
        self.assertEqual((codes, told), ([1], self.WANT))
        self.assertEqual(list(told), list(self.WANT))

    def test_in_lanes_is_the_same(self):
        lib = load("lib_lanes.py")
        sys.modules["lib_lanes"] = lib
        if not lib.namespaces_here():
            lib.leave_network = lambda: None
        codes, told = self.everything(2)
        self.assertEqual((codes, told), ([1], self.WANT))
        self.assertEqual(list(told), list(self.WANT))

    def test_ubertest_goes_first(self):
        lib = load("lib_lanes.py")
        sys.modules["lib_lanes"] = lib
        with unittest.mock.patch.object(lib, "in_lanes") as called:
            self.everything(2)
        lanes, names, first = called.call_args.args[:3]
        self.assertEqual((lanes, names, first), (2, list(self.WANT), [5]))

    def refused(self, *argv):
        module = load("run-fabtests")
        module.namespaces_here = lambda: self.namespaces
        with unittest.mock.patch.object(sys, "argv", ["x", *argv]):
            try:
                module.arguments()
            except SystemExit as end:
                return end.code
        return None

    def test_lanes_that_cannot_be_had_are_refused(self):
        self.namespaces = True
        for argv in (("--prov", "tcp"), ("--prov", "tcp", "--lanes", "1"),
                     ("--lanes", "3"), ()):
            self.assertIsNone(self.refused(*argv))
        self.assertRegex(self.refused("--prov", "tcp", "--lanes", "2"),
                         "^x: --lanes is for unimem: [^\n]*$")
        self.assertRegex(self.refused("--lanes", "0"), "at least one")
        self.namespaces = False
        self.assertRegex(self.refused("--lanes", "2"), "no network namespace")


class Lanes(Base):
    def setUp(self):
        super().setUp()
        self.lib = load("lib_lanes.py")
        # as a runner begins: the Jail of another test has changed both
        ctypes.CDLL(None).prctl(sys.modules["lib_run"].PR_SET_CHILD_SUBREAPER,
                                0, 0, 0, 0)
        for number in self.lib.STOPS:
            signal.signal(number, signal.SIG_DFL)
        self.folders = set(glob.glob("/tmp/unimem-test-*"))
        self.own_network = self.lib.namespaces_here()
        if not self.own_network:
            self.lib.leave_network = lambda: None

    def new_folders(self):
        """Folders of lanes of ours, by what the tests put there."""
        return [path for path in set(glob.glob("/tmp/unimem-test-*")) -
                self.folders if os.path.exists(os.path.join(path, self.mark))]

    @property
    def mark(self):
        return "of-" + os.path.basename(self.work)

    def path(self, name):
        return os.path.join(self.work, name)

    def run_lanes(self, act, first, lanes, tests):
        run = load("lib_run.py")
        report = run.Report("lanes")

        def begin(folder):
            self.jail = run.Jail(None, folder)
            with open(os.path.join(folder, self.mark), "w"):
                pass
            return lambda n: act(n, report), report, self.jail.close

        self.lib.in_lanes(lanes, ["t%d" % n for n in range(tests)], first,
                          begin, report)
        return report

    def lanes(self, act, first=(), lanes=3, tests=8):
        """The output of tests of some lanes, and their report; act(number,
        report) is a test."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            report = self.run_lanes(act, first, lanes, tests)
        self.assertEqual(self.new_folders(), [])
        return out.getvalue().splitlines(), report

    def apart(self, act, lanes, tests):
        """Process id of a runner whose output is in the file "out"."""
        pid = os.fork()
        if pid == 0:
            try:
                with open(self.path("out"), "w") as out:
                    with contextlib.redirect_stdout(out):
                        self.run_lanes(act, (), lanes, tests)
            except SystemExit:
                pass
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        return pid

    def until(self, condition):
        """Wait for it; an end for what hangs."""
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def holds(self, name, text):
        with contextlib.suppress(FileNotFoundError):
            with open(self.path(name)) as data:
                return text in data.read()
        return False

    def sleeper(self):
        """In a lane: start a test's process, and write its number and ours."""
        child = self.jail.start(["sleep", "1000"], subprocess.DEVNULL,
                                os.environ)
        with open(self.path("new"), "w") as out:
            out.write("%d %d" % (child.pid, os.getpid()))
        os.rename(self.path("new"), self.path("pids"))
        return child

    def sleeping(self):
        """(process, lane) of sleeper(), which is awaited"""
        self.until(lambda: os.path.exists(self.path("pids")))
        with open(self.path("pids")) as data:
            return map(int, data.read().split())

    def test_each_test_runs_once_and_is_counted(self):
        def act(number, report):
            time.sleep(0.3 if number == 0 else 0.05)
            if number == 5:
                report.not_ok("t5", "because")
            elif number == 6:
                report.skip("t6", "because")
            else:
                report.ok("t%d" % number, 0)

        output, report = self.lanes(act, [7])
        self.assertEqual([re.search("t[0-9]", w)[0] for w in output],
                         ["t%d" % n for n in range(8)])
        self.assertEqual(report.count, {"ok": 6, "not ok": 1, "skip": 1})
        self.assertEqual(report.failed, ["t5"])

    def test_first_goes_first(self):
        def act(number, _report):
            with open(self.path("order"), "a") as out:
                out.write(str(number))

        self.lanes(act, [6, 3], lanes=1)
        self.assertTrue(self.holds("order", "36012457"))

    def test_results_are_printed_as_they_come(self):
        def act(number, report):
            if number == 2:
                self.until(lambda: self.holds("out", "ok - t1"))
            report.ok("t%d" % number, 0)

        pid = self.apart(act, 1, 3)
        os.waitpid(pid, 0)
        self.assertTrue(self.holds("out", "ok - t2"))

    def test_a_lane_that_ends_is_a_failure(self):
        def act(number, report):
            if number == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            report.ok("t%d" % number, 0)

        output, report = self.lanes(act)
        self.assertEqual(report.count, {"ok": 7, "not ok": 1, "skip": 0})
        self.assertEqual(report.failed, ["t3"])
        self.assertEqual(len(output), 8)
        self.assertRegex(output[3], r"^not ok - t3 # lane [0-2] ended in it: "
                         r"signal 9 \(Killed\)$")

    def test_a_lane_says_why_it_ends(self):
        def act(number, report):
            report.ok("t%d/part" % number, 0)
            if number == 0:
                sys.exit("fabtests have no fi_x")
            if number == 1:
                raise SystemExit(143)

        output, report = self.lanes(act, lanes=2, tests=4)
        self.assertEqual(report.count, {"ok": 2, "not ok": 4, "skip": 0})
        self.assertEqual(sorted(report.failed), ["t0", "t1", "t2", "t3"])
        self.assertRegex("\n".join(output), r"""^ok - t0/part # .*
not ok - t0 # lane [01] ended in it: fabtests have no fi_x
ok - t1/part # .*
not ok - t1 # lane [01] ended in it: exit 143
not ok - t2 # no lane was left for it: lane 0: .*, lane 1: .*
not ok - t3 # no lane was left for it: lane 0: .*, lane 1: .*$""")

    def test_an_error_in_a_test_has_a_name(self):
        def act(number, report):
            if number == 2:
                raise ValueError("of something")
            report.ok("t%d" % number, 0)

        with unittest.mock.patch.object(traceback, "print_exc"):
            output, report = self.lanes(act)
        self.assertEqual(report.failed, ["t2"])
        self.assertIn("ended in it: ValueError: of something", output[2])

    def test_a_killed_lane_leaves_nothing(self):
        def act(number, report):
            if number == 1:
                self.sleeper().wait()
            elif number == 2:
                process, lane = self.sleeping()
                os.kill(lane, signal.SIGKILL)
                # while other lanes go on, too
                self.until(lambda: not os.path.exists("/proc/%d" % process))
                self.until(lambda: len(self.new_folders()) == 1)
            report.ok("t%d" % number, 0)

        _, report = self.lanes(act, lanes=2, tests=3)
        self.assertEqual(report.failed, ["t1"])

    def test_a_killed_runner_leaves_nothing(self):
        pid = self.apart(lambda *_: self.sleeper().wait(), 1, 1)
        process, lane = self.sleeping()
        self.lib.become_reaper()
        os.kill(pid, signal.SIGKILL)
        for ended in (pid, lane):
            os.waitpid(ended, 0)
        self.assertFalse(os.path.exists("/proc/%d" % process))
        self.assertEqual(self.new_folders(), [])

    def test_a_lane_whose_runner_has_ended_ends(self):
        with unittest.mock.patch.object(os, "getppid", return_value=1):
            output, report = self.lanes(lambda *_: None, tests=2)
        self.assertEqual(report.failed, ["t0", "t1"])
        self.assertIn("lane 0: the runner has ended", output[-1])

    def test_a_stopped_run_prints_what_is_there(self):
        def act(number, report):
            if number == 1:
                self.sleeper().wait()
            report.ok("t%d" % number, 0)

        take_end = self.lib.Run.take_end

        def noted(run, lane):
            name = "ended%d" % lane.test
            take_end(run, lane)
            with open(self.path(name), "w"):
                pass

        with unittest.mock.patch.object(self.lib.Run, "take_end", noted):
            pid = self.apart(act, 2, 4)
        process, lane = self.sleeping()
        self.until(lambda: os.path.exists(self.path("ended3")))
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        with open(self.path("out")) as data:
            self.assertRegex(data.read(), r"""^ok - t0 # .*
ok - t2 # .*
ok - t3 # .*
# stopped: 1 of 4 tests have no result
$""")
        for gone in (process, lane):
            self.assertFalse(os.path.exists("/proc/%d" % gone))
        self.assertEqual(self.new_folders(), [])

    def test_a_lane_holds_no_other_lanes_pipe(self):
        def pipes():
            links = []
            for name in os.listdir("/proc/self/fd"):
                with contextlib.suppress(OSError):
                    links.append(os.readlink("/proc/self/fd/" + name))
            return len([link for link in links if link.startswith("pipe:")])

        before = pipes()

        def act(number, report):
            # the queue, and its own messages
            if pipes() == before + 2:
                report.ok("t%d" % number, 0)

        self.assertEqual(self.lanes(act)[1].count["ok"], 8)

    def test_a_lane_has_a_network_of_its_own(self):
        if not self.own_network:
            self.skipTest("no network namespaces")
        port = socket.socket()
        self.addCleanup(port.close)
        port.bind(("127.0.0.1", 0))

        def act(number, report):
            with socket.socket() as other:
                other.bind(port.getsockname())
            report.ok("t%d" % number, 0)

        self.assertEqual(self.lanes(act)[1].count["ok"], 8)

    def test_the_number_of_lanes_has_a_bound(self):
        self.lib.namespaces_here = lambda: True
        for cpus, lanes in ((1, 2), (2, 4), (64, 8)):
            with unittest.mock.patch.object(
                    os, "sched_getaffinity", return_value=range(cpus)):
                self.assertEqual(self.lib.lanes_here(), lanes)
        self.lib.namespaces_here = lambda: False
        self.assertEqual(self.lib.lanes_here(), 1)


class AtOnce(unittest.TestCase):
    """at-once.sh: the sum of commands that run at the same time."""

    GOOD = 'echo "%d passed, 0 failed, %d skipped"'
    BAD = "sh -c 'echo 1 passed, 1 failed, 0 skipped; exit 1'"
    NONE = "sh -c 'echo 0 passed, 0 failed, 2 skipped; exit 77'"

    def at_once(self, *commands):
        done = subprocess.run(
            ["sh", os.path.join(HERE, "check/at-once.sh"), *commands],
            stdout=subprocess.PIPE, text=True, timeout=60, check=False)
        return done.returncode, done.stdout.splitlines()[-1]

    def test_sums(self):
        self.assertEqual(
            self.at_once(self.GOOD % (1, 2), self.GOOD % (3, 4)),
            (0, "4 passed, 0 failed, 6 skipped"))

    def test_one_that_fails(self):
        self.assertEqual(self.at_once(self.BAD, self.GOOD % (1, 0)),
                         (1, "2 passed, 1 failed, 0 skipped"))

    def test_one_without_a_sum(self):
        self.assertEqual(self.at_once(self.GOOD % (1, 0), "true")[0], 1)

    def test_one_that_ends_early(self):
        self.assertEqual(
            self.at_once(self.GOOD % (1, 0),
                         "sh -c '%s; kill -9 $$'" % (self.GOOD % (1, 0)))[0],
            1)

    def test_skips(self):
        self.assertEqual(self.at_once(self.NONE, self.GOOD % (1, 0)),
                         (0, "1 passed, 0 failed, 2 skipped"))
        self.assertEqual(self.at_once(self.NONE, self.NONE),
                         (77, "0 passed, 0 failed, 4 skipped"))

    def test_they_run_at_the_same_time(self):
        with tempfile.TemporaryDirectory() as d:
            os.mkfifo(d + "/fifo")
            self.assertEqual(
                self.at_once("sh -c 'echo x >%s/fifo; %s'" % (
                    d, self.GOOD % (1, 0)), "sh -c 'read x <%s/fifo; %s'" % (
                        d, self.GOOD % (1, 0))),
                (0, "2 passed, 0 failed, 0 skipped"))


def main():
    result = unittest.main(exit=False).result
    for test, why in result.skipped:
        print("skip %s_%s (%s)" % (
            type(test).__name__, test.id().rsplit(".test_")[-1], why))
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
