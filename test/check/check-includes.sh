#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A file includes headers of its own layer and of lower layers only
# (docs/architecture.md). Which headers each folder may include:
#
#   prov/unimem/*	its own, util/, hal.h, hal_param.h, gsas_op.h;
#			unm_atomic: gsas.h
#   prov/unimem/util	itself: a leaf
#   prov/unimem/hal	itself, util/; of libfabric the error numbers only; its
#			backends not hal.h
#   gsas		hal.h, hal_limit.h, hal_process.h, util/; its folders:
#			daemon > client, service > common > op (a leaf), and
#			for all but op and service the public headers, for
#			these gsas_types.h
#   rdma		itself, hal.h, util/, gsas_port.h
#   malloc	itself, util/, hal_limit.h
#   mailbox	hal.h, util/; folders: cuse, daemon, client > common
#			> unimem
#   tools		hal.h and unm_stats.h, for what a public page holds;
#			gsas_port.h and gsas_job.h; hal_limit.h, unm_topology.h
#   bench		itself; hal_limits.c also hal.h; model_*.c also hal.h,
#			hal_model.h; gsas_*: gsas.h, gsas_op.h, gsas_mmu.h
#
# Order of the provider, from top to bottom. A file includes headers of its own
# folder or of one further down; unm_prov.c is above all of them.
#
#   api		objects and calls of libfabric
#   progress	moves what is under way; sleeping, the thread, ends of peers
#   trigger	triggered and deferred work
#   msg		messages
#   rma		one-sided operations, dmable memory
#   core	what the protocols share: rings, counters, peers, wire, matching
#   (none)	fi_getinfo(3), parameters, log
#   util	containers, clock
#
# A unit is X.c with X.h, or either alone. In these folders, in the HAL with its
# backends and in the folders of gsas/ and mailbox/ the units form no cycle, and
# X.h declares functions of X.c only. hal.h lists the units of the HAL in their
# order.
#
#   unm_match, unm_wire, unm_space, unm_stats, gsas_op, gsas_mmu, gsas_pages,
#   gsas_segment, gsas_work: pure, no hal.h by any detour
# and no header includes itself by a detour.
. "$(dirname "$0")/check-lib.sh"

# shellcheck disable=SC2016 # awk's dollars
c_files | xargs awk '
BEGIN {
	pure_unm = "^unm_(match|wire|space|stats|proto)\\.[ch]$"
	pure_gsas = "^gsas_(op.*|mmu|pages|segment|work)\\.[ch]$"
	layered = "^prov/unimem/(unm_|(api|progress|trigger|msg|rma|core|" \
		"util)/)"
	united = substr(layered, 1, length(layered) - 1) \
		"|hal/)|^gsas/[a-z]+/|^mailbox/(client|common|cuse|daemon)/"
	n = split("util . core rma msg trigger progress api", order)
	for (i = 1; i <= n; i++)
		rank[order[i]] = i
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
function unit(path) { sub(/\.[ch]$/, "", path); return path }
# height of a file of the provider
function height(path)
{
	if (base(path) == "unm_prov.c")
		return 99
	sub(/^prov\/unimem\//, "", path)
	return rank[path ~ /\// ? substr(path, 1, index(path, "/") - 1) : "."]
}
function bad(file, why)
{
	print file ": " why
	failed = 1
}
# the folder in gsas/; "public" for the installed headers
function subdir(file)
{
	return split(file, part, "/") == 2 ? "public" : part[2]
}
# may a file of folder "from" of gsas/ include a header of its folder "to"?
function gsas_allowed(from, to)
{
	if (from == to)
		return 1
	if (to == "public")
		return from != "op" && from != "service"
	if (from == "daemon")
		return to ~ /^(client|service|common|op)$/
	if (from == "client" || from == "service")
		return to == "common" || to == "op"
	return from == "common" && to == "op"
}
# may a file of folder "from" of mailbox/ include a header of its folder "to"?
function mailbox_allowed(from, to)
{
	if (from == to || to == "unimem")
		return 1
	return to == "common" && from ~ /^(cuse|daemon|client)$/
}
# direct: may a file of folder "from" include header "name" of folder "to"?
function allowed(file, from, to, name)
{
	if (from == "test")
		return 1
	if (from == "gsas" && name == "gsas_types.h")
		return 1
	if (from == "gsas" && to == "gsas")
		return gsas_allowed(subdir(file), subdir(path[name]))
	if (from == "mailbox" && to == "mailbox")
		return mailbox_allowed(subdir(file), subdir(path[name]))
	if (file ~ /^gsas\/op\//)
		return 0
	if (file ~ layered && path[name] ~ layered)
		return height(file) >= height(path[name])
	if (file ~ /\/hal\/.*\// && name == "hal.h")
		return 0
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
	if (from == "rdma")
		return to == "util" || name == "hal.h" || name == "gsas_port.h"
	if (from == "mailbox")
		return to == "util" || name == "hal.h"
	if (from == "malloc")
		return to == "util" || name == "hal_limit.h"
	if (from == "tools")
		return name ~ /^(hal|hal_limit|unm_stats|unm_topology)\.h$/ ||
			name ~ /^gsas_(port|job)\.h$/
	if (from == "bench")
		return file ~ /hal_limits|model_r/ &&
				name ~ /^hal(_model)?\.h$/ ||
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
# functions that a unit defines, and those that its header declares: a name in
# the first column of a line or behind its type, then a brace or a semicolon
FILENAME !~ united { next }
/^NO\(/ { split($2, q, ","); defined[unit(FILENAME), q[1]] = 1 }
FNR == 1 || /^\/\*|^#/ { name = "" }
/^(HAL_EXPORT )?[a-z][^=]*\(/ && !/^(static|typedef)/ {
	name = $0
	gsub(/__attribute__.*/, "", name)
	sub(/\(.*/, "", name)
	sub(/.*[ *]/, "", name)
}
/^\{/ {
	defined[unit(FILENAME), name] = 1
	name = ""
}
name != "" && /;[ \t]*$/ {
	if (FILENAME ~ /\.h$/)
		declared[unit(FILENAME), name] = FILENAME
	name = ""
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
# Does a way through units lead back to the first one?
function circle(top, u, trail,	i, to)
{
	if (shown[top] || round[top, u]++)
		return
	for (i = 1; i <= nto[u]; i++) {
		to = uses[u, i]
		if (to == top && !shown[top]++)
			bad(top, "is in a cycle of units:" trail " " base(u))
		else if (to != top)
			circle(top, to, trail " " base(u))
	}
}
# the includes of X.c and X.h as those of one unit
function gather(	n, i, u, to)
{
	for (n = 1; n <= nfiles; n++) {
		u = unit(files[n])
		if (u !~ united)
			continue
		for (i = 1; i <= ninc[files[n]]; i++) {
			to = unit(path[inc[files[n], i]])
			if (to ~ united && to != u)
				uses[u, ++nto[u]] = to
		}
	}
}
END {
	gather()
	for (n = 1; n <= nfiles; n++)
		if (!looked[unit(files[n])]++)
			circle(unit(files[n]), unit(files[n]), "")
	for (both in declared) {
		split(both, q, SUBSEP)
		if (!(both in defined))
			bad(declared[both], q[2] "() is not defined in " \
			    base(q[1]) ".c")
	}
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
