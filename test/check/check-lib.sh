# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# What the check-*.sh share; sourced by them. They run in the source tree:
# from make check, or by hand from anywhere.

UNM_SRCDIR=${UNM_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
cd "$UNM_SRCDIR" || exit 99

# not a test of this machine: exit as one that was skipped, and say why
skip()
{
	echo "skipped: $*"
	exit 77
}

# Makefile.am and the parts that it includes, one a line
makefiles()
{
	echo Makefile.am
	find prov gsas rdma mailbox malloc test -name '*.mk' | LC_ALL=C sort
}

# exported FILE [TYPE]: the defined dynamic symbols of a shared library, without
# those of the compiler; TYPE: as nm names it (T: functions)
exported()
{
	"${NM:-nm}" -D --defined-only "$1" |
		awk -v type="${2:-}" '
			type == "" ? $2 != "A" : $2 == type { print $NF }' |
		grep -vE '^__(asan|odr_asan|ubsan|tsan|sanitizer|gcov)' |
		grep -vE '^(_(init|fini)|mangle_path)$'
}

# C sources of the project, one a line
c_files()
{
	find prov gsas rdma mailbox malloc tools test bench -name '*.[ch]' \
		2>/dev/null | LC_ALL=C sort
}

# Python scripts, by name or by first line
python_files()
{
	find scripts test bench -type f -size -200k 2>/dev/null |
	while read -r f; do
		case $f in
		*.py)		echo "$f" ;;
		*.[a-z]*)	;;
		*)		head -c 64 "$f" | LC_ALL=C grep -aq \
					'^#!.*python' && echo "$f" ;;
		esac
	done | LC_ALL=C sort
}

# shell scripts, by name or by first line
sh_files()
{
	for f in autogen.sh quickstart .ci/run; do
		[ -e "$f" ] && echo "$f"
	done
	find scripts test bench -type f -size -200k 2>/dev/null |
	while read -r f; do
		case $f in
		*.sh)		echo "$f" ;;
		*.[a-z]*)	;;
		*)		head -c 64 "$f" | LC_ALL=C grep -aq '^#!.*sh' &&
				echo "$f" ;;
		esac
	done | LC_ALL=C sort
}
