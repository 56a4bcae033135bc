#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What the accessors of hal_mmio_dev.c are in the machine's own instructions:
# 16 bytes are one access, each barrier is there. No model can see that: they
# run on boards only. OBJDUMP: that of a cross compiler.
. "$(dirname "$0")/check-lib.sh"

lib=${UNM_BUILDDIR:?run by make check}/.libs/libunimem-hal.so
objdump=${OBJDUMP:-objdump}

command -v "$objdump" >/dev/null 2>&1 || skip "$objdump is not installed"
LC_ALL=C
export LC_ALL
kind=$("$objdump" -f "$lib") || exit 99
case $kind in
*x86-64*)	machine=x86 stores=mfence loads=lfence ;;
*aarch64*)	machine=aarch64 stores=dsb.st loads=dsb.ld ;;
*architecture:*UNKNOWN*) exit 99 ;;
*)		skip "no board has such a processor" ;;
esac

# each function of that file: what it does of the things that matter here, in
# order. Those it calls are part of it (a build without -O inlines nothing).
# LOAD: 8 bytes from a register's address, READ, WRITE: 16 bytes; not the stack.
done_by()
{
	{ "$objdump" -t "$lib"; "$objdump" -d --no-show-raw-insn "$lib"; } |
	awk -v machine="$machine" '
	function number(hex,	i, n)
	{
		for (i = 1; i <= length(hex); i++)
			n = 16 * n + index("0123456789abcdef",
					   substr(hex, i, 1)) - 1
		return n
	}

	function x86(insn)
	{
		if (insn ~ /^[mls]fence/)
			return substr(insn, 1, 6)
		if (insn ~ /^v?mov(dqa|aps|apd) .*,%xmm/ && insn !~ /%r[sb]p/)
			return insn ~ /\(/ ? "READ" : ""
		if (insn ~ /^v?mov(dqa|aps|apd) %xmm/ && insn !~ /%r[sb]p/)
			return insn ~ /\(/ ? "WRITE" : ""
		if (insn ~ /^movq? \(%r[^)]*\),%r/ && insn !~ /%r[sb]p/)
			return "LOAD"
		return ""
	}

	function arm(insn)
	{
		if (insn ~ /^d[sm]b /)
			return substr(insn, 1, 3) "." substr(insn, 5)
		if (insn ~ /^(ldp x[0-9]+, x[0-9]+|ldr q[0-9]+), \[x[0-9]+\]/)
			return "READ"
		if (insn ~ /^(stp x[0-9]+, x[0-9]+|str q[0-9]+), \[x[0-9]+\]/)
			return "WRITE"
		if (insn ~ /^ldr x[0-9]+, \[x[0-9]+(, x[0-9]+)?\]/)
			return "LOAD"
		return ""
	}

	# all that the function at an address does
	function does(at, depth,	i, all, what, word)
	{
		for (i = at; i < ends[at]; i++) {
			if (!(i in code))
				continue
			split(code[i], word, " ")
			if (word[1] ~ /^(callq?|jmpq?|bl?)$/) {
				sub(/^0x/, "", word[2])
				word[2] = number(word[2])
				if (word[2] in ends && word[2] != at &&
				    depth < 3)
					all = all does(word[2], depth + 1)
			}
			what = machine == "x86" ? x86(code[i]) : arm(code[i])
			if (what != "")
				all = all " " what
		}
		return all
	}

	$3 == "F" {
		at = number($1)
		ends[at] = at + number($(NF - 1))
		if ($NF ~ /^mmio_/)
			entry[$NF] = at
	}
	/^ *[0-9a-f]+:/ {
		at = $1
		sub(/:$/, "", at)
		$1 = ""
		sub(/^ /, "")
		code[number(at)] = $0
	}
	END {
		for (name in entry)
			print name does(entry[name], 0)
	}'
}

table=$(done_by)
failed=0

# must FUNCTION KIND WHAT : of what it does, those of that kind, are WHAT
must()
{
	did=$(printf '%s\n' "$table" | sed -n "s/^$1 //p" | tr ' ' '\n' |
		grep -xE "$2" | tr '\n' ' ')
	did=${did% }
	printf '%s\n' "$did" | grep -qxE "$3" || {
		echo "$1: want $3, found ${did:-none}"
		failed=1
	}
}

fences='[mls]fence|d[sm]b.*'
must mmio_read128 READ READ
must mmio_write128 WRITE WRITE
# the load: what was stored last is read back
must mmio_stores_before_notify "$fences|LOAD" "$stores( LOAD)+ $loads"
must mmio_memory_before_start "$fences" "$stores"
must mmio_status_before_memory "$fences" "$loads"
must mmio_loads_before_store "$fences" "$loads"
exit $failed
