#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Endpoints with each parameter that takes a protocol away (bench/exanode, the
# staircase), alone; then with all of them over the sizes of the prototype, as
# in the first published configuration.
. "$(dirname "$0")/ep-lib.sh"

all="order peek cancel multi wait object av garbage mem mem_find threads rma
	edges atomic address data asleep safe cntr regions cache stream litmus"
bad=0

# switched "NAME=VALUE ..." MORE: the endpoint tests with these parameters, and
# MORE. Not in any list: tests of the packets of a protocol (golden) and of full
# rings and spaces (pressure). Not in the lists of bounce buffers: tests that a
# long message is read after the call (transfer), that it is streamed
# (litmus_msg), or that its import is kept (dmable); and where every message is
# one of rendezvous, tests that a send needs no receiver (receive, complete,
# work).
switched()
{
	echo "######## $1"
	(
		for setting in $1; do
			export "${setting?}"
		done
		ep_some "$all $2"
	) || bad=1
}

switched FI_UNIMEM_INLINE=0 "receive transfer complete dmable work"
switched FI_UNIMEM_EAGER_MAX=0 "receive transfer complete dmable litmus_msg
	work"
switched FI_UNIMEM_BOUNCE=4M "receive complete work"
switched "FI_UNIMEM_BOUNCE=4M FI_UNIMEM_RKEY_KEEP=0" "receive complete work"
switched "FI_UNIMEM_PROFILE=exanode FI_UNIMEM_BOARD=3 FI_UNIMEM_INLINE=0
	FI_UNIMEM_EAGER_MAX=0 FI_UNIMEM_BOUNCE=4M FI_UNIMEM_RKEY_KEEP=0" ""
exit $bad
