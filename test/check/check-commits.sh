#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The last commits obey CONTRIBUTING.md, as far as scripts/commit-msg can see;
# and scripts/commit-msg sees each breach of a rule.
. "$(dirname "$0")/check-lib.sh"

# So many commits are checked, but only those after FROM: if a commit that
# breaks a rule has been published, FROM names it, with the reason. Now: titles
# of the language pass that name two areas.
COMMITS=20
FROM=391192d

command -v git >/dev/null 2>&1 || skip "git is not installed"
script=$PWD/scripts/commit-msg
top=$(mktemp -d) || exit 99
trap 'rm -rf "$top"' EXIT
failed=0
# the caller may be a hook of git, which sets these for its repository
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE
repo() { git -C "$top" -c user.name=n -c user.email=e "$@"; }

# verdict NAME TEXT OUTPUT CODE : OUTPUT contains TEXT and CODE is 1; without
# TEXT there is no OUTPUT and CODE is 0
verdict()
{
	if [ "$4" -ne $((${#2} > 0)) ]; then
		echo "FAIL: $1: exit code $4"
		failed=1
	fi
	if [ -z "$2" ] && [ -n "$3" ]; then
		printf 'FAIL: %s: refused:\n%s\n' "$1" "$3"
		failed=1
	elif ! printf '%s\n' "$3" | grep -qF -- "$2"; then
		printf 'FAIL: %s: not "%s", but:\n%s\n' "$1" "$2" "$3"
		failed=1
	fi
}

# message NAME TEXT MESSAGE : the hook prints TEXT about MESSAGE, a format of
# printf, while 40 lines are staged
message()
{
	# shellcheck disable=SC2059 # a format
	printf "$3" >"$top/.git/message"
	out=$(cd "$top" && sh "$script" .git/message 2>&1)
	verdict "$1" "$2" "$out" $?
}

# commit NAME TEXT MESSAGE : --commit prints TEXT about a commit of what is
# staged
commit()
{
	# shellcheck disable=SC2059 # a format
	printf "$3" | repo commit -q -F -
	out=$(cd "$top" && sh "$script" --commit HEAD 2>&1)
	verdict "$1" "$2" "$out" $?
}

# Messages
repo init -q
seq 40 >"$top/file"
repo add file
why='\n\nA body says why.\n'
fixes="$why\nFixes:"
long=$(printf '%090d' 0)
message "right" "" "unimem/hal: Fix what was wrong$why# $long a comment\n"
message "no area" "not \"area:" "Fix it$why"
message "unknown area" "no area \"hall\"" "hall: Fix it$why"
message "no part" "no area \"hal/\"" "hal/: Fix it$why"
message "small letter" "no capital" "hal: fix it$why"
message "past" "\"Fixed\" is not" "hal: Fixed it$why"
message "third person" "\"Fixes\" is not" "hal: Fixes it$why"
message "gerund" "\"Fixing\" is not" "hal: Fixing it$why"
message "a verb in -ss" "" "hal: Pass it$why"
message "a verb in -ed" "" "hal: Embed it$why"
message "full stop" "full stop" "hal: Fix it.$why"
message "73 columns" "73 columns" "hal: Fix $(printf '%064d' 0)$why"
message "72 columns" "" "hal: Fix $(printf '%063d' 0)$why"
message "second line" "not blank" "hal: Fix it\nA body says why.\n"
message "no body" "no body: 40 changed" "hal: Fix it\n"
message "no body but trailers" "no body: 40 changed" \
	"hal: Fix it\n\nReviewed-by: a <b@c>\n"
message "wide body" "columns, at most 80" "hal: Fix it$why\nbody $long\n"
message "wide output" "" "hal: Fix it$why\n    output $long\n"
message "wide URL" "" "hal: Fix it$why\nhttps://example.org/$long\n"
message "fixes" "" "hal: Fix it$fixes 0123abc (\"hal: A\")\n"
message "fixes, no title" "not \"Fixes:" "hal: Fix it$fixes 0123abc\n"
message "fixes, no hash" "not \"Fixes:" "hal: Fix it$fixes a bug\n"
message "fixes, short hash" "not \"Fixes:" \
	"hal: Fix it$fixes 0123ab (\"hal: A\")\n"
message "a path" "a path of one machine" "hal: Fix it$why\nIn /home/a/b.\n"
message "no path" "" "hal: Fix it$why\nSee docs/work/a and prov/root/b.\n"
message "a host" "name of a host" "hal: Fix it$why\nOn node7.internal.\n"

# Commits: the first has no parent, and no limit
seq 600 >"$top/first"
repo add first
commit "the first" "" "hal: Add it$why"
hash=$(repo rev-parse --short HEAD)
echo a >"$top/small"
repo add small
commit "trivial" "" "hal: Add it\n"
repo rm -q small
commit "fixes" "" "hal: Fix it$fixes $hash (\"hal: Add it\")\n"
echo a >"$top/small"
repo add small
commit "fixes, another title" "is \"hal: Add it\"" \
	"hal: Fix it$fixes $hash (\"hal: Mend it\")\n"
seq 499 >"$top/second"
repo add second
commit "499 lines" "" "hal: Add it$why"
echo a >>"$top/small"
seq 500 -1 2 | sed 's/$/ /' >"$top/third"
repo add .
commit "500 lines" "500 added lines" "hal: Add it$why"
repo mv first fourth
commit "renamed" "" "hal: Move it$why"
cat "$top/third" >>"$top/small"
: >"$top/third"
repo add .
commit "moved lines" "" "hal: Move it$why"
{ cat "$top/second"; seq 300 | sed 's/^/x/'; seq 300 | sed 's/^/y/'; } \
	>>"$top/fourth"
repo rm -q second
repo add .
commit "moved and more" "added lines, fewer" "hal: Move it$why"
repo reset -q --hard HEAD~1
out=$(cd "$top" && sh "$script" --commit HEAD~2 HEAD)
verdict "a right commit after a wrong one" "500 added lines" "$out" $?
mkdir -p "$top/test/fuzz/corpus/a" "$top/test/mutants" "$top/docs"
for file in test/fuzz/corpus/a/b test/mutants/a.patch docs/check-full.txt \
	docs/mutants.txt; do
	seq 2000 2500 >"$top/$file"
done
repo add .
commit "not written by hand" "" "test: Add it$why"
[ $failed -eq 0 ] || exit 1

# The last commits of this source
[ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ] ||
	skip "no git history of this source"
if ! git merge-base --is-ancestor "${FROM:-none}" HEAD 2>/dev/null; then
	FROM=
fi
# shellcheck disable=SC2046 # hashes
sh "$script" --commit $(git rev-list --no-merges -n $COMMITS \
	HEAD ${FROM:+"^$FROM"})
