#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Comments, documents and manual pages use the words of the field: none of the
# words of words.txt is in them.
. "$(dirname "$0")/check-lib.sh"

command -v python3 >/dev/null 2>&1 || skip "python3 is not installed"
{
	c_files
	sh_files
	python_files
	find ./*.md bench docs man mpich-patches test -name '*.md' -o \
		-name '*.[1-9]' | sed 's,^\./,,'
} | python3 -B test/check/source_rules.py words
