#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A register model that does what no hardware may - an acknowledged packet
# lost, another's identity, an end signalled twice or before its data - is found
# through the device backend, too: the named test fails on it, and passes
# without.

# try SIM TEST PATIENCE
try()
{
	CMOCKA_MESSAGE_OUTPUT=STDOUT FI_UNIMEM_SIM=$1 \
		${UNM_EXEC:+"$UNM_EXEC"} \
		"${UNM_BUILDDIR:?run by make check}/test/conform/hal_conform" \
		--hal sim --no-procs --packets 200000 --test "$2" \
		--patience "$3" 2>&1
}

complain()
{
	echo "FAIL: $1"
	echo "$out" | tail -20
	failed=1
}

failed=0
# mutant MUTANT TEST [MORE]: MORE are parameters of both models
mutant()
{
	out=$(try "mutant=none${3:+,$3}" "$2" 10)
	case $out in
	*"OK ] $2"*)	;;
	*)		complain "$2 does not pass without a mutant" ;;
	esac
	# one try: a test that notices by chance only is too short
	out=$(try "mutant=$1${3:+,$3}" "$2" 1)
	# one that failed and could not clean up is an error to cmocka
	case $out in
	*"FAILED  ] $2"* | *"ERROR   ] $2"*)	;;
	*)	complain "$2 does not notice $1" ;;
	esac
}

mutant nonack stream_all_to_all fifo=8
mutant nonack pkt_depth_exact fifo=8,depth=16
mutant forged stream_between_threads
mutant forged pkt_identity_is_the_senders
mutant early dma_one_completion_after_data
mutant early dma_every_size engine=simple
# the end of one piece is taken for that of the next
mutant twice dma_one_completion_after_data btt=12,dma=20000
exit $failed
