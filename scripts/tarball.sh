# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# tarball.sh - upstream tarballs as Debian distributes them, fetched by apt-get
# and kept in the cache.
#
# SUMS below is a file whose only line that is not a comment holds the sha256
# and the name of one tarball.

tarball_sum()  { awk '!/^#/ && NF == 2 { print $1; exit }' "$1"; }
tarball_name() { awk '!/^#/ && NF == 2 { print $2; exit }' "$1"; }

# tarball_check SUMS FILE : does FILE have that checksum?
tarball_check()
{
	printf '%s  %s\n' "$(tarball_sum "$1")" "$2" | sha256sum -c -
}

# tarball_path SUMS [FILE] : FILE, which the user has named, or the cache's
tarball_path()
{
	printf '%s\n' "${2:-$CACHE/tarballs/$(tarball_name "$1")}"
}

# tarball_have SUMS : is the right tarball in the cache?
tarball_have()
{
	local t

	t=$(tarball_path "$1")
	[ -r "$t" ] && tarball_check "$1" "$t" >/dev/null 2>&1
}

# tarball_fetch SUMS SUITE SOURCE : fetch SOURCE's tarball of Debian's SUITE
# into the cache. Runs as a step.
tarball_fetch()
{
	local name out=$CACHE/tarballs

	name=$(tarball_name "$1")
	apt_private deb-src "$2"
	(cd "$APT_DIR/get" && "${APT[@]}" source \
		--download-only --tar-only "$3")
	tarball_check "$1" "$APT_DIR/get/$name"
	mkdir -p "$out"
	mv -f "$APT_DIR/get/$name" "$out/"
}

# tarball_named SUMS FILE VARIABLE : FILE, which the user has named by
# VARIABLE, is the right one; or end
tarball_named()
{
	[ -r "$2" ] || die "$3=$2 cannot be read"
	tarball_check "$1" "$2" >/dev/null 2>&1 ||
		die "$2 is not $(tarball_name "$1"): its sha256 differs from" \
		    "the one in ${1#"$TOP"/}"
}
