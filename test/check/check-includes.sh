#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Who may include whom (design.md, section 2): includes go downwards only.
#
#   prov/unimem/*	its own, util/, hal.h, hal_param.h, gsas_op.h;
#			unm_atomic: gsas.h
#   prov/unimem/util	itself: a leaf
#   prov/unimem/hal	itself, util/; of libfabric the error numbers only
#   gsas		itself, hal.h, hal_limit.h, hal_process.h, util/;
#			gsas_op: itself
#   tools		hal.h and unm_stats.h, for what a public page holds
#   bench		itself; hal_limits.c also hal.h; gsas_*: gsas.h,
#			gsas_op.h, gsas_mmu.h
#   unm_match, unm_wire, unm_space, unm_stats, gsas_op, gsas_mmu, gsas_pages,
#   gsas_segment, gsas_work: pure, no hal.h by any detour
# and no header includes itself by a detour.
. "$(dirname "$0")/check-lib.sh"

# shellcheck disable=SC2016 # awk's dollars
c_files | xargs awk '
BEGIN {
	pure_unm = "^unm_(match|wire|space|stats|proto)\\.[ch]$"
	pure_gsas = "^gsas_(op.*|mmu|pages|segment|work)\\.[ch]$"
}
function base(path) { sub(/.*\//, "", path); return path }
function dir(path)
{
	if (path ~ /^prov\/unimem\/hal\//) return "hal"
	if (path ~ /^prov\/unimem\/util\//) return "util"
	if (path ~ /^prov\//) return "prov"
	sub(/\/.*/, "", path)
	return path
}
function bad(file, why)
{
	print file ": " why
	failed = 1
}
# direct: may a file of folder "from" include header "name" of folder "to"?
function allowed(file, from, to, name)
{
	if (from == "test")
		return 1
	if (file ~ /^gsas\/gsas_op/)
		return name ~ /^gsas_op/
	if (from == to)
		return 1
	if (from == "prov")
		return to == "util" || name ~ /^hal(_param)?\.h$/ ||
			name == "gsas_op.h" ||
			file ~ /unm_atomic/ && name == "gsas.h"
	if (from == "hal")
		return to == "util"
	if (from == "gsas")
		return to == "util" || name ~ /^hal(_process|_limit)?\.h$/
	if (from == "tools")
		return name == "hal.h" || name == "unm_stats.h"
	if (from == "bench")
		return file ~ /hal_limits/ && name == "hal.h" ||
			file ~ /\/gsas_/ && name ~ /^gsas(_op|_mmu)?\.h$/
	return 0
}
FNR == 1 {
	folder[base(FILENAME)] = dir(FILENAME)
	path[base(FILENAME)] = FILENAME
	files[++nfiles] = FILENAME
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
	split($0, q, "\"")
	inc[FILENAME, ++ninc[FILENAME]] = base(q[2])
}
/^[ \t]*#[ \t]*include[ \t]*</ {
	split($0, q, /[<>]/)
	if (q[2] ~ /^ofi|^(prov|shared)\//)
		bad(FILENAME, "<" q[2] ">: public headers of libfabric only")
	if (dir(FILENAME) == "hal" && q[2] ~ /^rdma\// &&
	    q[2] != "rdma/fi_errno.h")
		bad(FILENAME, "<" q[2] ">: the HAL may know fi_errno.h only")
}
# depth first from "file"; trail holds the files on the way
function walk(top, file, trail, pure,	i, name)
{
	if (seen[top, file]++)
		return
	for (i = 1; i <= ninc[file]; i++) {
		name = inc[file, i]
		if (pure && folder[name] == "hal")
			bad(top, "reaches " name " by" trail " " file)
		if (path[name] == top)
			bad(top, "includes itself by" trail " " file)
		else if (name in path)
			walk(top, path[name], trail " " file, pure)
	}
}
END {
	for (n = 1; n <= nfiles; n++) {
		file = files[n]
		for (i = 1; i <= ninc[file]; i++) {
			name = inc[file, i]
			if (!(name in folder))
				bad(file, "\"" name "\": no such header")
			else if (!allowed(file, dir(file), folder[name], name))
				bad(file, "may not include " path[name])
		}
		walk(file, file, "", base(file) ~ pure_unm || \
		     base(file) ~ pure_gsas)
	}
	exit failed
}'
