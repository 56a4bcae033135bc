#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# make help and CONTRIBUTING.md name every target that people run, configure
# --help and CONTRIBUTING.md every option, and none of them names another.
# shellcheck disable=SC2016 # backquotes of CONTRIBUTING.md, awk's dollars
. "$(dirname "$0")/check-lib.sh"

# automake's, which have no rule in Makefile.am
AUTOMAKE="all check install installcheck uninstall clean distclean"
AUTOMAKE="$AUTOMAKE dist distcheck"

# help_targets DIR : the targets that make help lists
help_targets() { sed -n 's/^#: \([a-z-]*\) .*/\1/p' "$1/Makefile.am"; }

# phony_targets DIR
phony_targets() { sed -n 's/^\.PHONY: //p' "$1/Makefile.am" | tr ' ' '\n'; }

# options DIR : NAME of each of our options --enable-NAME
options()
{
	sed -n 's/^UNM_ARG_ENABLE(\[\([a-z-]*\)\].*/\1/p' "$1/configure.ac"
}

# table DIR : the first column of CONTRIBUTING.md's tables, --enable-{a,b} as
# --enable-a and --enable-b
table()
{
	sed -n 's/^| \([^|]*`\) |.*/\1/p' "$1/CONTRIBUTING.md" | awk '
	{
		print
		while (match($0, /--enable-[{][^}]*[}]/)) {
			n = split(substr($0, RSTART + 10, RLENGTH - 11), o, ",")
			for (i = 1; i <= n; i++)
				print "`configure --enable-" o[i] "`"
			$0 = substr($0, RSTART + RLENGTH)
		}
	}'
}

# complaints DIR : a line for each thing that one place has and another lacks
complaints()
{
	help_targets "$1" >"$top/help"
	table "$1" >"$top/table"
	for t in $AUTOMAKE $(phony_targets "$1"); do
		grep -qxF -e "$t" "$top/help" ||
			echo "make help: no line \"#: $t\" in Makefile.am"
	done
	while read -r t; do
		grep -qE "\`make ${t}( |\`)" "$top/table" ||
			echo "CONTRIBUTING.md: no \`make $t\` in the table"
		case " $AUTOMAKE " in *" $t "*) continue ;; esac
		phony_targets "$1" | grep -qxF -e "$t" ||
			echo "Makefile.am: \"#: $t\" is not .PHONY"
	done <"$top/help"
	grep -o '`make [a-z-]*`' "$top/table" | tr -d '`' |
	while read -r _ t; do
		grep -qxF -e "$t" "$top/help" ||
			echo "CONTRIBUTING.md: there is no make $t"
	done
	for t in $(options "$1"); do
		grep -qE -e "--enable-${t}( |\`)" "$top/table" ||
			echo "CONTRIBUTING.md: no --enable-$t in the table"
	done
	grep -o -e '--enable-[a-z-]*[ `]' "$top/table" | tr -d ' `' |
	while read -r t; do
		options "$1" | grep -qxF -e "${t#--enable-}" ||
			echo "CONTRIBUTING.md: configure has no $t"
	done
	# an option without our macro, or without text, has no line in --help
	grep -n 'AC_ARG_ENABLE' "$1/configure.ac"
	grep -nE '^UNM_ARG_ENABLE\(\[[a-z-]*\](\)|, *\[\])' "$1/configure.ac"
}

top=$(mktemp -d) || exit 99
trap 'rm -rf "$top"' EXIT
failed=0

# notices TEXT FILE SED : with FILE changed by SED there is a complaint TEXT
notices()
{
	rm -rf "$top/tree"
	mkdir "$top/tree"
	cp Makefile.am configure.ac CONTRIBUTING.md "$top/tree/"
	sed "$3" "$2" >"$top/tree/$2"
	complaints "$top/tree" | grep -qF -e "$1" || {
		echo "FAIL: no \"$1\" after $3"
		failed=1
	}
}
notices 'no line "#: fuzz"' Makefile.am '/^#: fuzz /d'
notices 'no line "#: dist"' Makefile.am '/^#: dist /d'
notices 'no line "#: new"' Makefile.am 's/^\.PHONY: /&new /'
notices '"#: new" is not .PHONY' Makefile.am 's/^#: fuzz /#: new /'
notices 'no `make fuzz`' CONTRIBUTING.md '/^| `make fuzz`/d'
notices 'no make new' CONTRIBUTING.md 's/^| `make fuzz`/| `make new`/'
notices 'no --enable-new' CONTRIBUTING.md 's/enable-debug`/enable-new`/'
notices 'no --enable-debug in' CONTRIBUTING.md '/enable-debug`/d'
notices 'no --enable-new' configure.ac 's/ENABLE(\[debug/ENABLE([new/'
notices 'UNM_ARG_ENABLE' configure.ac 's/^\(UNM_ARG_ENABLE(\[ubsan\]\).*/\1)/'

complaints . >"$top/all"
cat "$top/all"
[ ! -s "$top/all" ] && exit $failed
exit 1
