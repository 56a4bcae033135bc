# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What a newcomer does first, as tests: libfabric's own tools, MPICH's choice
# of settings, the demo's proof that unimem carried the bytes.

SMOKE_OK=0 SMOKE_BAD=0

# smoke_one NAME COMMAND...
smoke_one()
{
	local name=$1 out
	shift

	if out=$(timeout --kill-after=5 120 "$BASH" "$TOP/scripts/step" \
			"$@" 2>&1 </dev/null); then
		SMOKE_OK=$((SMOKE_OK + 1))
		say "ok - $name"
	else
		SMOKE_BAD=$((SMOKE_BAD + 1))
		say "not ok - $name # exit $?"
		printf '%s\n' "$out" | tail -n 20 | sed 's/^/#   /'
	fi
}

smoke_listed() { fi_info -p unimem | grep '^provider: unimem'; }
smoke_params() { fi_info -e | grep '^# FI_UNIMEM_\|^FI_UNIMEM_'; }
smoke_info()   { unimem_info --version; }

smoke_listens()
{
	grep -q "$(printf ':%04X 00000000:0000 0A' "$1")" /proc/net/tcp
}

# smoke_pingpong [SERVER CLIENT] : every size with data checks, over loopback
smoke_pingpong()
{
	local port server rc=0
	local args=(-p unimem -e rdm -c -S all)

	# Ports below those that the kernel gives away by itself.
	for _ in 1 2 3 4 5; do
		port=$((20000 + RANDOM % 10000))
		! smoke_listens "$port" || continue
		"${1:-fi_pingpong}" "${args[@]}" -B "$port" &
		server=$!
		while kill -0 "$server" 2>/dev/null &&
		      ! smoke_listens "$port"; do
			sleep 0.05
		done
		! kill -0 "$server" 2>/dev/null || break
	done
	("${2:-fi_pingpong}" "${args[@]}" -P "$port" 127.0.0.1) || rc=$?
	[ "$rc" -eq 0 ] || kill "$server" 2>/dev/null || :
	wait "$server" && return "$rc"
}

# MPICH uses the provider in its native modes, with no setting.
smoke_native()
{
	local out want

	out=$(MPIR_CVAR_DEBUG_SUMMARY=1 mpirun -n 2 "$BUILD/bench/unm_lat" \
		-m 0:0 -i 10 -x 0)
	printf '%s\n' "$out"
	for want in AV_TABLE TAGGED AM; do
		grep -qE "MPIDI_OFI_ENABLE_$want: +1" <<<"$out"
	done
}

# The demo in short, counters compared.
smoke_carried()
{
	local stats=$BUILD/demo/smoke-$1

	rm -rf "$stats"
	mkdir -p "$stats"
	FI_UNIMEM_STATS=$stats mpirun -n 2 "$BUILD/bench/unm_$1" -t 0.02 |
		tee "$LOGS/demo-smoke-$1.log"
	demo_prove "smoke-$1" "$stats"
}

# The line that count_line reads
smoke_end()
{
	say "$SMOKE_OK passed, $SMOKE_BAD failed, 0 skipped"
	[ "$SMOKE_BAD" -eq 0 ]
}

smoke()
{
	check_env
	smoke_one "fi_info lists the provider" smoke_listed
	smoke_one "fi_info -e lists its parameters" smoke_params
	smoke_one "unimem_info runs" smoke_info
	smoke_one "fi_pingpong, all sizes, data checked" smoke_pingpong
	smoke_one "MPICH in native mode" smoke_native
	smoke_one "latency: unimem carried the bytes" smoke_carried lat
	smoke_one "bandwidth: unimem carried the bytes" smoke_carried bw
	smoke_end
}
