# SPDX-License-Identifier: BSD-2-Clause
"""bench/model, with results of our own: the rule that judges raw readings, and
files of figures that are refused."""

import io
import os
import sys
import unittest
from contextlib import redirect_stdout
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "bench"))

import lib_model                        # noqa: E402


def program(name):
    """A runner as a module: its name has no .py."""
    loader = SourceFileLoader("bench_" + name, os.path.join(TOP, "bench",
                                                            name))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


FILE = os.path.join(TOP, "prov/unimem/hal/exanode.model")
model = program("model")
ROW = "%s %.1f 0 0 %.1f %s 0 judged"    # as model_raw prints it


class Rule(unittest.TestCase):
    """Does a reading give its figure back?"""

    def test_share(self):
        good = lib_model.gives_back
        for reading, verdict in ((940, False), (960, True), (1040, True),
                                 (1060, False)):
            self.assertEqual(good(1000, reading, "MB/s", None), verdict)

    def test_times_have_calls(self):
        good = lib_model.gives_back
        self.assertTrue(good(1000, 1190, "ns", 100))
        self.assertFalse(good(1000, 1210, "ns", 100))
        self.assertFalse(good(1000, 940, "ns", 0))

    def test_short_time(self):
        """Of 50 ns, 5 % are less than a round of polling."""
        self.assertTrue(lib_model.gives_back(50, 180, "ns", 80))
        self.assertFalse(lib_model.gives_back(50, 190, "ns", 80))

    def test_no_figure(self):
        good = lib_model.gives_back
        for args in ((0, 80, "ns", 80), (None, 80, "ns", 80),
                     (1000, None, "ns", 80), (1000, 1000, "ns", None)):
            self.assertIsNone(good(*args))
        self.assertIsNone(lib_model.off(80, 0))
        self.assertIsNone(lib_model.off(None, 80))
        self.assertAlmostEqual(lib_model.off(110, 100), 0.1)


class Files(unittest.TestCase):
    """What is no file of figures is refused in one line."""

    def refused(self, old, new):
        with open(FILE, encoding="utf-8") as f:
            text = f.read()
        self.assertIn(old, text)
        path = lib_model.write_model(text.replace(old, new), None)
        try:
            with self.assertRaises(SystemExit) as end:
                lib_model.figures(path)
        finally:
            os.unlink(path)
        self.assertEqual(str(end.exception).count("\n"), 0)
        return str(end.exception).partition(": ")[2]

    def test_refused(self):
        self.assertEqual(self.refused("line_rate =", "# line_rate ="),
                         "no figure line_rate")
        self.assertEqual(self.refused("line_rate = 5", "line_rate = 0"),
                         "line_rate is 0")
        self.assertEqual(self.refused("line_rate = 5 M/s", "line_rate = 5 s"),
                         "line_rate = 5 s is no figure")

    def test_nothing(self):
        path = lib_model.nothing(FILE, None)
        try:
            m = lib_model.figures(path)
        finally:
            os.unlink(path)
        for name, value in (("packet_latency", 0), ("store_rate", 1e9),
                            ("dma_bandwidth", 1e12), ("fifo_depth", 64)):
            self.assertEqual(m[name], value)


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


if __name__ == "__main__":
    unittest.main()
