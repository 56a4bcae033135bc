# SPDX-License-Identifier: BSD-2-Clause
"""Files of figures of the timing model, the readings of model_raw, and the rule
that says whether a reading gives its figure back. For bench/model and
bench/exanode; docs/model.md, section 5, has the reason of each bound."""

import os
import re
import sys
import tempfile

# a line of a file: the blanks are those that the provider takes
LINE = re.compile(r"^([ \t]*(\w+)[ \t]*=[ \t]*)([0-9.]+)([ \t]+)([^\s#]+)", re.M)
NOTE = re.compile(r"^# (\w+) = (\S+)$", re.M)     # of a CSV
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "k/s": 1e3, "M/s": 1e6, "MB/s": 1e6,
         "GB/s": 1e9, "packets": 1, "stores": 1}
TIMES = {"ns", "us", "ms"}
# those of the file; only times may be 0
NAMES = ["packet_latency", "packet_gap", "fifo_depth", "store_latency",
         "store_rate", "line_rate", "store_queue", "load_round_trip",
         "dma_setup", "dma_bandwidth", "route_registration"]
# the units of those that are no times
NOT_TIMES = {"fifo_depth": {"packets"}, "store_queue": {"stores"},
             "store_rate": {"k/s", "M/s"}, "line_rate": {"k/s", "M/s"},
             "dma_bandwidth": {"MB/s", "GB/s"}}
SHARE = 0.05                    # of the figure, that a reading may be off
ROUND_NS = 50                   # a round of polling: it ends after an arrival
# Readings that have no such round: of stores nothing is polled, and the last
# packet's round is divided by the packets of a burst.
NO_ROUND = {"store_time", "line_time", "packet_gap"}
# figures of next to nothing, by the unit of the true one
NOTHING = {"ns": "0 ns", "us": "0 ns", "ms": "0 ns", "k/s": "1000 M/s",
           "M/s": "1000 M/s", "MB/s": "1000 GB/s", "GB/s": "1000 GB/s"}


def end(why):
    """The end of a program that was called in a wrong way, or lacks a tool."""
    sys.stderr.write(why + "\n")
    sys.exit(2)


def text_of(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except (OSError, ValueError) as e:
        return end("%s: %s" % (path, getattr(e, "strerror", None) or e))


def figure(name, number, unit):
    """(The figure in ns, per second or bytes per second, "") or (None, why it is
    none)."""
    if name not in NAMES:
        return None, "no figure %s" % name
    if unit not in NOT_TIMES.get(name, TIMES) or \
            not re.fullmatch(r"[0-9]+\.?[0-9]*|\.[0-9]+", number):
        return None, "%s = %s %s is no figure" % (name, number, unit)
    value = float(number) * UNITS[unit]
    return (value, "") if value or name not in NOT_TIMES else \
        (None, "%s is 0" % name)


def figures(path):
    """Of a file of figures, in ns, per second, and bytes per second. Ends with
    one line if a figure is missing, or is a rate or a number of 0."""
    found = {}
    for _, name, number, _, unit in LINE.findall(text_of(path)):
        found[name], why = figure(name, number, unit)
        if why:
            end("%s: %s" % (path, why))
    for name in NAMES:
        if name not in found:
            end("%s: no figure %s" % (path, name))
    return found


def changed(path, changes):
    """The text of a file of figures with some of them changed: FIGURE=VALUE."""
    text = text_of(path)
    for change in changes:
        m = LINE.fullmatch(change.strip())
        why = figure(m[2], m[3], m[5])[1] if m else \
            "not as packet_latency='2.0 us'"
        if why:
            end("--set %s: %s" % (change, why))
        text = LINE.sub(lambda old, m=m: old[0] if old[2] != m[2] else
                        old[1] + m[3] + " " + m[5], text)
    return text


def write_model(text, folder):
    """A new file of figures: its path, which the caller unlinks."""
    fd, new = tempfile.mkstemp(".model", "figures-", folder)
    with os.fdopen(fd, "w", encoding="utf-8") as f:
        f.write(text)
    return new


def nothing(path, folder):
    """A copy of a file with figures of next to nothing: no time is left."""
    new = write_model(LINE.sub(
        lambda m: m[1] + NOTHING.get(m[5], m[3] + m[4] + m[5]),
        text_of(path)), folder)
    left = [name for name, value in figures(new).items()
            if value and name not in NOT_TIMES]
    if left:
        os.unlink(new)
        end("%s: %s is no time" % (path, ", ".join(left)))
    return new


def notes(found):
    """Lines for the head of a CSV: figures, as figures() returns them."""
    return "".join("# %s = %r\n" % (name, found[name]) for name in NAMES)


def noted(path):
    """The figures that notes() has written into a CSV, or None."""
    found = dict(NOTE.findall(text_of(path)))
    if set(found) != set(NAMES):
        return None
    try:
        return {name: float(value) for name, value in found.items()}
    except ValueError:
        return None


class Row:
    """A line of model_raw: a figure and its reading, which has the time of the
    calls in it."""

    def __init__(self, line):
        words = line.split()
        self.line = line
        self.name = words[0]
        self.figure, self.reading = float(words[1]), float(words[4])
        self.unit = words[5]
        self.judged = words[7] == "judged"


def rows(text):
    """The readings of model_raw, in order."""
    return [Row(line) for line in text.splitlines()
            if not line.startswith("#") and len(line.split()) > 7]


def off(reading, figure):
    """By which share a reading is off its figure; None: not measured, or a
    figure of 0, of which nothing is a share."""
    return reading / figure - 1 if reading is not None and figure else None


def allowed(name, figure):
    """Ns of a reading that gives a time back, without the calls."""
    return (1 + SHARE) * figure + (0 if name in NO_ROUND else ROUND_NS)


def gives_back(name, figure, reading, unit, calls):
    """Does a reading give its figure back? calls: the reading under figures of
    next to nothing, which is the time of the calls. None: not measured, or a
    figure of 0."""
    share = off(reading, figure)
    if share is None or unit == "ns" and calls is None:
        return None
    if unit == "ns":
        late = reading - calls > allowed(name, figure)
    else:
        late = share > SHARE
    return share >= -SHARE and not late
