# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The same suites as an ordinary user, when we are root. The unit tests run in
# a copy of the tree that belongs to that user; the runners of test/ change
# the user themselves (--user).

USER_ID=65534
USER_STAGE=${USER_STAGE:-}

# as_user COMMAND... : no privilege, no group, nothing of root's environment
as_user()
{
	setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups \
		--inh-caps=-all --bounding-set=-all --no-new-privs \
		env -i PATH="$PATH" HOME="$USER_STAGE/home" \
		TMPDIR="$USER_STAGE/tmp" UNIMEM_JOBS="$JOBS" "$@"
}

user_stage_fill()
{
	mkdir -p "$USER_STAGE/tree" "$USER_STAGE/home" "$USER_STAGE/tmp"
	tar -C "$TOP" --exclude=./build --exclude=./.git -cf - . |
		tar -C "$USER_STAGE/tree" -xf -
	# configure was copied too: it need not be made again.
	mkdir -p "$USER_STAGE/tree/build/stamp"
	cp "$STAMPS/autogen" "$USER_STAGE/tree/build/stamp/"
	chown -R "$USER_ID:$USER_ID" "$USER_STAGE"
}

# The command of a step or suite, in the stage, as that user
user_inside()
{
	cd "$USER_STAGE/tree" || return
	as_user "$BASH" scripts/step "$@"
}

user_build()
{
	make_dirs
	build_tree
}

user_unstage()
{
	[ -n "$USER_STAGE" ] || return 0
	# Keep what the tests wrote about failures.
	rm -rf "$LOGS/user"
	mkdir -p "$LOGS/user"
	find "$USER_STAGE/tree/build" -name '*.log' -size -1M \
		-exec cp -t "$LOGS/user" {} + 2>/dev/null || :
	rm -rf "$USER_STAGE"
	USER_STAGE=
}

# Why there can be no tests as an ordinary user; nothing if there can
user_refusal()
{
	if [ "$(id -u)" -ne 0 ]; then
		echo "needs root"
	elif ! setpriv --reuid "$USER_ID" --clear-groups true 2>/dev/null; then
		echo "root may not change its user here"
	fi
}

# The stage's place, if it is wanted
user_begin()
{
	[ -z "$(user_refusal)" ] || return 0
	USER_STAGE=$(mktemp -d "${TMPDIR:-/tmp}/unimem-user.XXXXXX")
	export USER_STAGE
	EXIT_HOOKS+=(user_unstage)
	chmod 711 "$USER_STAGE"
}

# The tree and its programs in the stage, which user_begin has made
user_prepare()
{
	local obj=$USER_STAGE/tree/build/obj

	step user-copy "copying the tree for an ordinary user" \
		"Is ${TMPDIR:-/tmp} full?" user_stage_fill
	step user-build "building as an ordinary user" \
		"The tree builds for root but not for others." \
		user_inside user_build
	step user-programs "building tests as an ordinary user" \
		"The tests build for root but not for others." \
		user_inside check_only "$obj" "$CHECK_AGAIN $CHECK_USER" \
		check_programs "$obj"
}

user_make()
{
	suite user-make "unit tests as an ordinary user" count_automake \
		user_inside check_again "$USER_STAGE/tree/build/obj" \
		"$CHECK_USER"
	user_unstage
}

check_user()
{
	local why

	why=$(user_refusal)
	if [ "$(id -u)" -ne 0 ]; then
		note "not root: all of the above ran as an ordinary user"
		skip_suite as-root "$why"
		return 0
	elif [ -n "$why" ]; then
		skip_suite as-user "$why"
		return 0
	fi
	user_make
	if ! unshare --mount true 2>/dev/null; then
		skip_suite user-runners "no mount namespaces in this place"
		return 0
	fi
	check_script user-fabtests "fabtests as an ordinary user" \
		test/run-fabtests --user "$USER_ID" \
		--match 'rdm_tagged|fi_cq|fi_multi_recv|fi_ubertest'
	check_script user-mpich "MPICH's tests as an ordinary user" \
		test/run-mpich --dirs examples --user "$USER_ID"
}
