# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The Debian packages of scripts/packages.txt.

# packages SECTION : the names of one section
packages()
{
	awk -v want="[$1]" '
		{ sub(/#.*/, "") }
		NF == 0 { next }
		$1 ~ /^\[/ { on = $1 == want; next }
		on { print $1 }' "$TOP/scripts/packages.txt"
}

packages_missing()
{
	local p s

	for p in $(packages "$1"); do
		s=$(dpkg-query -W -f='${db:Status-Abbrev}' "$p" 2>&1) || :
		[[ $s == ?i* ]] || printf '%s\n' "$p"
	done
}

# packages_install SUDO PACKAGE... ; runs as a step
packages_install()
{
	local as=$1
	shift

	# shellcheck disable=SC2086
	$as env DEBIAN_FRONTEND=noninteractive apt-get update ||
		echo "some list could not be read; going on without it"
	# shellcheck disable=SC2086
	$as env DEBIAN_FRONTEND=noninteractive apt-get install -y \
		--no-install-recommends "$@"
}

# packages_need SECTION : install what is missing, or say how
packages_need()
{
	local missing as="" cmd

	if ! have dpkg-query || ! have apt-get; then
		warn "not a Debian system: taking the tools and libraries of" \
			"scripts/packages.txt [$1] for granted"
		return 0
	fi
	mapfile -t missing < <(packages_missing "$1")
	[ ${#missing[@]} -gt 0 ] || return 0
	cmd="apt-get update && apt-get install -y ${missing[*]}"
	if [ "$(id -u)" -ne 0 ]; then
		# A password may be asked for only where someone can type it.
		if have sudo && { sudo -n true 2>/dev/null ||
				  { [ -t 0 ] && sudo -v; }; }; then
			as="sudo -n"
		else
			die "missing packages; ask for, as root: $cmd"
		fi
	fi
	step "packages-$1" "installing ${#missing[@]} packages ($1)" \
		"By hand, as root: $cmd" \
		packages_install "$as" "${missing[@]}"
}

# packages_quiet COMMAND... : without starting any daemon of a package, now or
# when the machine starts. The programs that start them, and those that enable
# their units and scripts, do nothing in the mount namespace of COMMAND.
packages_quiet()
{
	# shellcheck disable=SC2016 # the inner shell's dollars
	unshare --mount --propagation private sh -c '
		for f in /usr/sbin/invoke-rc.d /usr/bin/deb-systemd-invoke \
			/usr/sbin/update-rc.d /usr/bin/deb-systemd-helper; do
			[ ! -e "$f" ] || mount --bind /bin/true "$f" || exit
		done
		exec "$@"' sh "$@"
}

# packages_try SECTION : install, by root, what is missing for a test that is
# skipped without it, and start no daemon of it
packages_try()
{
	local missing

	have apt-get || return 0
	mapfile -t missing < <(packages_missing "$1")
	[ ${#missing[@]} -gt 0 ] || return 0
	step "packages-$1" "installing ${#missing[@]} packages ($1)" \
		"The test is skipped without them." \
		packages_quiet "$BASH" "$TOP/scripts/step" packages_install "" \
		"${missing[@]}"
}

# ---- Packages that are not installed --------------------------------------

DEBIAN_SUITES='(bookworm|trixie|forky|sid|(old|un)?stable)'

# mirrors KIND SUITE : those this system uses, as a list of KIND (deb, deb-src)
# for SUITE. Reads both forms of apt's lists; entries of other archives are left
# out by their suite.
mirrors()
{
	local f

	for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -r "$f" ] || continue
		mirrors_oneline "$1" "$2" <"$f"
	done
	for f in /etc/apt/sources.list.d/*.sources; do
		[ -r "$f" ] || continue
		mirrors_deb822 "$1" "$2" <"$f"
	done
}

mirrors_oneline()
{
	local w='[[:space:]]+' from

	from="^ *deb(-src)?$w(\[[^]]*\]|)[[:space:]]*([^[:space:]]+)$w"
	from+="$DEBIAN_SUITES$w(.*$w|)main$w.*"

	sed -nE -e 's/#.*//' \
	    -e "s/\$/ /" -e "t new" -e ":new" \
	    -e "s,$from,$1 \2 \3 $2 main," \
	    -e T \
	    -e 's/arch[+-]?=[^] ]*//' \
	    -e 's/\[[[:space:]]*\]//' \
	    -e p
}

mirrors_deb822()
{
	awk -v kind="$1" -v out="$2" -v suite=" $DEBIAN_SUITES " '
	function flush(  n, i, u, opt) {
		if (tolower(v["enabled"]) != "no" &&
		    v["types"] ~ /deb/ &&
		    (" " v["suites"] " ") ~ suite &&
		    (" " v["components"] " ") ~ / main /) {
			if (v["signed-by"] ~ /^\/[^ ]*$/)
				opt = "[signed-by=" v["signed-by"] "] "
			n = split(v["uris"], u, " ")
			for (i = 1; i <= n; i++)
				print kind " " opt u[i] " " out " main"
		}
		delete v
	}
	/^#/ { next }
	/^[ \t]*$/ { flush(); key = ""; next }
	/^[ \t]/ { if (key != "") v[key] = v[key] " " $0; next }
	{
		key = tolower($0); sub(/:.*/, "", key)
		val = $0; sub(/^[^:]*:[ \t]*/, "", val)
		v[key] = val
	}
	END { flush() }'
}

apt_private_end() { rm -rf "$APT_DIR"; }

# apt_private KIND SUITE OPTION... : sets APT to an apt-get for packages that
# are not for this system: its lists, cache and state are in the folder APT_DIR,
# which goes with this shell; the system's configuration is not touched.
apt_private()
{
	local kind=$1 suite=$2 d
	shift 2

	mkdir -p "$CACHE"
	d=$(mktemp -d "$CACHE/apt.XXXXXX")
	APT_DIR=$d
	EXIT_HOOKS+=(apt_private_end)
	chmod 755 "$d"
	mkdir -p "$d/lists/partial" "$d/cache/archives/partial" "$d/get"
	: >"$d/status"
	mirrors "$kind" "$suite" | sort -u >"$d/src.list"
	if ! [ -s "$d/src.list" ]; then
		warn "no Debian mirror in /etc/apt/sources.list(.d)"
		return 1
	fi
	cat "$d/src.list"
	APT=(apt-get -o "Dir::Etc::SourceList=$d/src.list"
		-o "Dir::Etc::SourceParts=-"
		-o "Dir::State::Lists=$d/lists"
		-o "Dir::State::Status=$d/status"
		-o "Dir::Cache=$d/cache"
		-o "APT::Sandbox::User="
		-o "Acquire::Retries=3" "$@")
	"${APT[@]}" update || :
}
