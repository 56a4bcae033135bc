#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""source_rules.py RULE - check the files that standard input names, one a line

file-comment  A C file begins with its licence and a comment
              "NAME - what it does".
words         No comment, document or manual page has a word of words.txt.
calls         No call with more than four arguments has a literal true or
              false among them, because its reader would have to count. Macros
              in capitals (rows of tables) and the compiler's own functions
              are left out.

Each rule is applied to the cases below first.
"""
import bisect
import io
import os
import re
import sys
import tokenize

HERE = os.path.dirname(os.path.realpath(__file__))
C_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.S)
MANY = 4  # arguments that a reader can tell apart by their place


def data(name):
    """The lines of a data file, without comments and blank lines."""
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                yield line.rstrip("\n")


# ---- file-comment ----------------------------------------------------------

def rule_file_comment(path, text):
    """Complaints about the first lines of a C file: (line, text)."""
    name = re.escape(os.path.basename(path))
    lines = text.split("\n", 2)
    if not re.match(r"(/\*|//) SPDX-License-Identifier: ", lines[0]):
        yield 1, "the first line does not name the licence"
    rest = text[len(lines[0]) + 1:]
    if not re.match(r"/\*\s(?: ?\*)?\s*%s - (?!\*/)\S" % name, rest):
        yield 2, "no comment \"%s - what it does\"" % os.path.basename(path)


FILE_COMMENT = [
    ("a.c", "/* SPDX-License-Identifier: X */\n/*\n * a.c - does\n */\n", 0),
    ("b/a.h", "// SPDX-License-Identifier: X\n/* a.h - does */\n", 0),
    ("a.c", "/*\n * a.c - does\n */\n", 2),
    ("a.c", "/* SPDX-License-Identifier: X */\n#include <b.h>\n", 1),
    ("a.c", "/* SPDX-License-Identifier: X */\n/* Does it. */\n", 1),
    ("a.c", "/* SPDX-License-Identifier: X */\n/* b.c - does */\n", 1),
    ("a.c", "/* SPDX-License-Identifier: X */\n/* a.c - */\n", 1),
    ("a.c", "", 2),
]


# ---- words -----------------------------------------------------------------

class Chunk:
    """Lines that are read as one text: a comment, or a paragraph of it."""

    def __init__(self):
        self.text = ""
        self.starts = []    # of each line, an offset in text
        self.lines = []

    def add(self, line, text):
        """Append the text of a line."""
        self.starts.append(len(self.text))
        self.lines.append(line)
        self.text += text.strip() + " "

    def line(self, offset):
        """The number of the line at this offset of text."""
        return self.lines[bisect.bisect_right(self.starts, offset) - 1]


def paragraphs(lines):
    """Chunks of (number, text), ended by an empty text."""
    chunk = Chunk()
    for line, text in lines:
        if text.strip():
            chunk.add(line, text)
        elif chunk.lines:
            yield chunk
            chunk = Chunk()
    if chunk.lines:
        yield chunk


def c_lines(text):
    """Of each comment its lines, and one without text."""
    for match in C_TOKEN.finditer(text):
        token = match.group()
        if token[0] != "/":
            continue
        line = text.count("\n", 0, match.start()) + 1
        token = re.sub(r"^/[*/]+|\*/$", "", token)
        for i, part in enumerate(token.split("\n")):
            yield line + i, re.sub(r"^\s*\*", "", part)
        yield line, ""


def sh_lines(text):
    """Comments of a shell script, of those behind a command each apart."""
    for line, part in enumerate(text.split("\n"), 1):
        match = re.match(r"\s*#(.*)", part)
        if match:
            yield line, match.group(1)
            continue
        yield line, ""
        match = re.search(r"\s#\s(.*)", part)
        if match:
            yield line, match.group(1)
            yield line, ""


def py_lines(text):
    """Comments and strings of several lines."""
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            if line != last + 1:
                yield line, ""
            yield line, token.string.lstrip("#")
            last = line
        elif token.type == tokenize.STRING and \
                re.match(r'[a-zA-Z]*"""', token.string):
            yield line, ""
            for i, part in enumerate(token.string.split("\n")):
                yield line + i, part.replace('"""', "")
            yield line, ""


def md_lines(text):
    """Text without code; items, rows and headings each apart."""
    code = False
    blank_before = True
    for line, part in enumerate(text.split("\n"), 1):
        indented = blank_before and part.startswith("    ")
        blank_before = part.strip() == "" or indented
        if part.lstrip().startswith("```"):
            code = not code
            yield line, ""
        elif code or indented:
            yield line, ""
        elif part.startswith("#"):
            yield line, ""
            yield line, part.lstrip("# ").lower()
            yield line, ""
        else:
            item = re.match(r"\s*([-*]|\d+\.)\s+(\[.\]\s)?(.*)", part)
            if item or part.startswith("|"):
                yield line, ""
            part = item.group(3) if item else part
            yield line, re.sub(r"`[^`]*`", "`", part)


def man_lines(text):
    """Text of a manual page, without its macros' names and fonts."""
    for line, part in enumerate(text.split("\n"), 1):
        if re.match(r"\.(SH|SS|TH|Sh|Ss|Dt|[TPI]P|Pp|It|\\\")", part) or \
                part == "":
            yield line, ""
            continue
        part = re.sub(r"^\.[A-Za-z]+ ?", "", part)
        yield line, re.sub(r"\\f.|\\&", "", part).replace("\\-", "-")


def source_lines(path, text):
    """The lines that people read in this file: (number, text)."""
    kind = os.path.splitext(path)[1]
    if kind in (".c", ".h"):
        return c_lines(text)
    if kind == ".md":
        return md_lines(text)
    if re.match(r"\.[1-9]$", kind):
        return man_lines(text)
    if kind == ".py" or "python" in text.split("\n", 1)[0]:
        return py_lines(text)
    return sh_lines(text)


class Words:
    """The lists of words.txt; its first lines describe them."""

    def __init__(self, lines):
        self.words = []
        self.starts = []
        self.excepted = []
        for line in lines:
            kind, rest = line.split(None, 1)
            pattern, instead = re.split(r"\s+=>\s+", rest)
            if kind == "word":
                # not in a name: told_peer, news->next, knock.c, tell()
                pattern = r"(?<![\w./>])(?:%s)(?![\w(]|\.[ch]\b|->)" % pattern
                self.words.append((re.compile(pattern), instead))
            elif kind == "start":
                pattern = r"(?:^|[.!?:]\s+)(%s)\s(?=[^.!?]*(.?))" % pattern
                self.starts.append((re.compile(pattern), instead))
            elif kind == "except":
                self.excepted.append(re.compile(pattern))
            else:
                raise ValueError("words.txt: no kind of line: " + kind)

    def rule(self, path, text):
        """Complaints about the words of a file: (line, text)."""
        for chunk in paragraphs(source_lines(path, text)):
            read = re.sub(r"\b[A-Z](?=[a-z]+\b)",
                          lambda m: m.group().lower(), chunk.text)
            for pattern in self.excepted:
                read = pattern.sub(lambda m: " " * len(m.group()), read)
            for pattern, instead in self.words:
                for match in pattern.finditer(read):
                    yield (chunk.line(match.start()),
                           "\"%s\": %s" % (match.group(), instead))
            for pattern, instead in self.starts:
                for match in pattern.finditer(chunk.text):
                    if match.group(2) != "?":
                        yield (chunk.line(match.start(1)),
                               "\"%s\": %s" % (match.group(1), instead))


WORDS_CASES = [
    ("a.c", "/* It is told. */ f(); /* Told. */ told(\"told\");\n", 2),
    ("a.c", "/* looks\n * at it */\n", 1),
    ("a.c", "/* told_peer, peer->told, told(), told.c, test/told NEWS */\n", 0),
    ("a.c", "/* News, told apart */\n", 1),
    ("a.c", "// told\nint told;\n", 1),
    ("a.c", "/* What it does. Who knows. What is that? What a */\n", 3),
    ("a.c", "/*\n * The state. What\n * it does.\n *\n * Who knows */\n", 2),
    ("a.c", "/* say what it does, or who knows */\n", 0),
    ("a.c", "/* See 3.1 */ /* the others */ /* the others' */\n", 2),
    ("a.sh", "#!/bin/sh\n# It is\n# told.\ntell=$#\nnews # told\n", 2),
    ("a.py", '"""It is\ntold."""\ntold = "told"  # news\n', 2),
    ("a", "#!/usr/bin/python3\ntold = 'told'  # news\n", 1),
    ("a.md", "It is told\n`told`\n```\ntold\n```\n\n# What is told\n", 2),
    ("a.md", "- [ ] So? What\n      comes?\n- What comes.\n\n    told\n", 1),
    ("a.7", ".Ss What is told\n.\\\" told\nIt is\n.B told\nand \\fBtold\\fR.\n", 2),
]


# ---- calls -----------------------------------------------------------------

CALL_TOKEN = re.compile(r"[A-Za-z_]\w*|[(){}\[\],;]|\S")
KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof", "defined"}


def blank(match):
    """A comment or a string without its text, but with its lines."""
    string = "0" if match.group()[0] in "\"'" else " "
    return string + "\n" * match.group().count("\n")


def rule_calls(_path, text):
    """Calls of many arguments with a bare true or false: (line, text)."""
    text = C_TOKEN.sub(blank, text)
    opened = []     # [name, line, arguments] of calls, None of other brackets
    last = ""
    for match in CALL_TOKEN.finditer(text):
        token = match.group()
        if token in "([{":
            call = None
            if token == "(" and re.match(r"[A-Za-z_]", last) and \
                    last not in KEYWORDS and \
                    not re.match(r"__|[A-Z0-9_]+$", last):
                line = text.count("\n", 0, match.start()) + 1
                call = (last, line, [[]])
            opened.append(call)
        elif token in ")]}":
            call = opened.pop() if opened else None
            if call and len(call[2]) > MANY:
                bare = [a[0] for a in call[2] if a in (["true"], ["false"])]
                if bare:
                    yield call[1], "%s() is called with a bare %s" % (
                        call[0], ", ".join(bare))
            if opened and opened[-1]:
                opened[-1][2][-1].append("()")
        elif opened and opened[-1]:
            if token == ",":
                opened[-1][2].append([])
            else:
                opened[-1][2][-1].append(token)
        last = token


CALLS = [
    ("a.c", "f(a, b, c, d, true);\n", 1),
    ("a.c", "f(false, b, c, d, true); f(0, 1, 2, 3, false);\n", 2),
    ("a.c", "f(a, b, c, true);\n", 0),
    ("a.c", "f(a, b, c, d, !true, x ? true : false);\n", 0),
    ("a.c", "f(a, (b, c), g(d, e, true), { f, false });\n", 0),
    ("a.c", "f(a, b,\n  g(true, 1,\n  2, 3, 4));\n", 1),
    ("a.c", "f(a, /* b, */ c, \"d, e\", ',', true, 0);\n", 1),
    ("a.c", "f(a, /* c, d, e */ b, true);\n", 0),
    ("a.c", "if (a, b, c, d, true) {} ROW(a, b, c, d, true)\n", 0),
]


# ---- All rules -------------------------------------------------------------

def test(rule, cases):
    """Whether the rule makes as many complaints as each case says."""
    failed = False
    for path, text, count in cases:
        found = list(rule(path, text))
        if len(found) != count:
            print("FAIL: not %d complaints about %r, but %r" % (
                count, text, found))
            failed = True
    return not failed


def main():
    """Check the rule, then the files; 1 if either fails."""
    words = Words(data("words.txt"))
    rules = {"file-comment": (rule_file_comment, FILE_COMMENT),
             "words": (words.rule, WORDS_CASES),
             "calls": (rule_calls, CALLS)}
    if len(sys.argv) != 2 or sys.argv[1] not in rules:
        sys.exit(__doc__)
    rule, cases = rules[sys.argv[1]]
    if not test(rule, cases):
        return 1
    failed = 0
    for path in sys.stdin.read().split():
        with open(path, encoding="utf-8") as file:
            found = list(rule(path, file.read()))
        for line, why in found:
            print("%s:%d: %s" % (path, line, why))
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
