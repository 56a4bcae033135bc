#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Programs that know nothing of libunimem-malloc.so run with it as a preload:
# Python with threads, forked processes and children that run other programs; xz
# with threads, and sort.
. "$(dirname "$0")/check-lib.sh"

lib=${UNM_BUILDDIR:?run by make check}/.libs/libunimem-malloc.so
[ -f "$lib" ] || {
	echo "check-malloc: no $lib"
	exit 1
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

if nm -D "$lib" 2>/dev/null | grep -q "__[at]san_"; then
	echo "check-malloc: SKIP: a sanitizer has a malloc of its own"
	exit 77
fi

# ld.so goes on without a preload that it cannot load, and says so
LD_PRELOAD=$lib env true 2>"$tmp/ld"
if [ -s "$tmp/ld" ]; then
	cat "$tmp/ld"
	exit 1
fi

with()
{
	LD_PRELOAD=$lib UNIMEM_MALLOC_MIN=64K "$@"
}

bad()
{
	echo "$*"
	failed=1
}

cat >"$tmp/threads.py" <<-EOF
	import hashlib, multiprocessing, os, subprocess, sys, threading, zlib

	def work(n, out):
	    blob = bytes([n]) * (300000 + n * 70001)
	    packed = zlib.compress(blob * 3, 1)
	    copy = bytearray(zlib.decompress(packed))
	    copy += bytes(copy)
	    copy.extend(blob)
	    assert copy == blob * 7
	    out[n] = hashlib.sha256(copy).hexdigest()

	def several():
	    out = {}
	    ts = [threading.Thread(target=work, args=(n, out))
	          for n in range(1, 9)]
	    for t in ts:
	        t.start()
	    for t in ts:
	        t.join()
	    assert len(out) == 8
	    return sorted(out.items())

	def child(_):
	    own[0] = os.getpid() % 251
	    return bytes(own[1:]) == b"\x07" * (len(own) - 1) and several()

	own = bytearray(b"\x07") * (1 << 20)
	with open("/proc/self/maps") as f:
	    used = "memfd:unimem-malloc" in f.read()
	first = several()
	with multiprocessing.get_context("fork").Pool(2) as pool:
	    assert pool.map(child, range(4)) == [first] * 4
	assert own == b"\x07" * (1 << 20)
	assert subprocess.run(["cat"], input=bytes(own), check=True,
	                      stdout=subprocess.PIPE).stdout == own
	assert os.popen("echo hello").read() == "hello\n"
	print(first, used)
EOF
python3 "$tmp/threads.py" >"$tmp/plain" || bad "python3 fails without it"
with python3 "$tmp/threads.py" >"$tmp/with" || bad "python3 fails with it"
grep -q "True$" "$tmp/with" ||
	echo "no large block: memory is short, or limited"
sed 's/True$/False/' "$tmp/with" | cmp - "$tmp/plain" ||
	bad "python3 has other results"

seq 1 200000 >"$tmp/numbers"
with xz -T2 -1 --block-size=300KiB <"$tmp/numbers" >"$tmp/xz" ||
	bad "xz -T2 fails"
with xz -dc -T2 <"$tmp/xz" | cmp - "$tmp/numbers" || bad "xz loses bytes"
LC_ALL=C sort -r "$tmp/numbers" >"$tmp/sorted"
LC_ALL=C with sort -r --parallel=2 -S 20M "$tmp/numbers" |
	cmp - "$tmp/sorted" || bad "sort has another order"
exit $failed
