# SPDX-License-Identifier: BSD-2-Clause
#
# Tests. A new test is one line in UNIT_TESTS, BUSY_TESTS, CHECKS, or a part of
# PROC_TESTS (GSAS_TESTS, MAILBOX_TESTS, KILL_TESTS).

# ---- Tests ---------------------------------------------------------------

# Exit codes: 0 passed, 77 skipped (with a line that says why), 99 cannot go
# on, else failed. A test that takes longer than CHECK_TIMEOUT seconds failed.
# UNM_EXEC=qemu-aarch64: one word that runs the programs of a cross build; what
# starts one of them, in a script or in C, puts it in front.

CHECKS = \
	test/check/check-calls.sh \
	test/check/check-commits.sh \
	test/check/check-docs.sh \
	test/check/check-dso.sh \
	test/check/check-fidelity.sh \
	test/check/check-file-comment.sh \
	test/check/check-gsasd.sh \
	test/check/check-gsas.sh \
	test/check/check-header.sh \
	test/check/check-help.sh \
	test/check/check-includes.sh \
	test/check/check-info.sh \
	test/check/check-mailbox.sh \
	test/check/check-malloc.sh \
	test/check/check-man.sh \
	test/check/check-mmio.sh \
	test/check/check-params.sh \
	test/check/check-protocol.sh \
	test/check/check-scale.sh \
	test/check/check-shell.sh \
	test/check/check-size.sh \
	test/check/check-sources.sh \
	test/check/check-spdx.sh \
	test/check/check-style.sh \
	test/check/check-tested.sh \
	test/check/check-todo.sh \
	test/check/check-words.sh

# of the tools of the tests, of the models, of unimem_info --selftest, and by
# another compiler
TOOL_CHECKS = \
	test/check/check-clang.sh \
	test/check/check-exanode.sh \
	test/check/check-gate.sh \
	test/check/check-model.sh \
	test/check/check-mutants.sh \
	test/check/check-mutants-run.sh \
	test/check/check-record.sh \
	test/check/check-runners.sh \
	test/check/check-selftest.sh \
	test/check/check-verdict.sh

# hal_conform, once for each backend
HAL_CHECKS = \
	test/check/check-hal-broken.sh \
	test/check/check-hal-dev.sh \
	test/check/check-hal-emu.sh \
	test/check/check-hal-exanode.sh \
	test/check/check-hal-fault.sh \
	test/check/check-hal-model.sh \
	test/check/check-hal-mutants.sh \
	test/check/check-hal-net.sh \
	test/check/check-hal-service.sh \
	test/check/check-hal-sim.sh \
	test/check/check-hal-sim-odd.sh \
	test/check/check-hal-wrap.sh

# endpoint tests of test/unit again, under other circumstances
EP_CHECKS = \
	test/check/check-ep-exanode.sh \
	test/check/check-ep-fault.sh \
	test/check/check-ep-libfabric.sh \
	test/check/check-ep-sim.sh \
	test/check/check-ep-stream.sh \
	test/check/check-ep-switches.sh \
	test/check/check-ep-wrap.sh

# fuzz targets: with --enable-fuzz programs of libFuzzer (make fuzz), else
# programs that replay their corpus with a few random changes
FUZZERS = \
	test/fuzz/fuzz_address \
	test/fuzz/fuzz_connection \
	test/fuzz/fuzz_gsas \
	test/fuzz/fuzz_gsas_pages \
	test/fuzz/fuzz_hosts \
	test/fuzz/fuzz_model \
	test/fuzz/fuzz_net \
	test/fuzz/fuzz_param \
	test/fuzz/fuzz_platform \
	test/fuzz/fuzz_wire

# of unimem-mailbox-cuse; where it is not built, check-mailbox.sh says so
if CUSE
CUSE_TESTS = \
	test/unit/test_mailbox_cuse \
	test/unit/test_mailbox_cuse_ends
endif

# cmocka programs, each of one source file
UNIT_TESTS = \
	$(FUZZERS) \
	test/unit/test_address \
	test/unit/test_adopted \
	test/unit/test_alias \
	test/unit/test_auto \
	test/unit/test_asleep \
	test/unit/test_atomic \
	test/unit/test_attach \
	test/unit/test_av \
	test/unit/test_av_remove \
	test/unit/test_bounce \
	test/unit/test_cache \
	test/unit/test_cancel \
	test/unit/test_closed \
	test/unit/test_cntr \
	test/unit/test_complete \
	test/unit/test_connect \
	test/unit/test_connect_crowd \
	test/unit/test_filter \
	test/unit/test_gsas_queue \
	test/unit/test_gsas_queue_race \
	test/unit/test_forged \
	test/unit/test_garbage \
	test/unit/test_growth \
	test/unit/test_long \
	test/unit/test_gsas_again \
	test/unit/test_gsas_batch \
	test/unit/test_gsas_board \
	test/unit/test_gsas_budget \
	test/unit/test_gsas_stall \
	test/unit/test_gsas_jobs \
	test/unit/test_gsas_client \
	test/unit/test_gsas_copy \
	test/unit/test_gsas_label \
	test/unit/test_gsas_launcher \
	test/unit/test_gsas_life \
	test/unit/test_gsas_lies \
	test/unit/test_gsas_published \
	test/unit/test_gsas_mmu \
	test/unit/test_gsas_misuse \
	test/unit/test_gsas_ops \
	test/unit/test_gsas_owned \
	test/unit/test_gsas_pkt \
	test/unit/test_gsas_serve_queue \
	test/unit/test_gsas_service \
	test/unit/test_gsas_signal \
	test/unit/test_gsas_spawn \
	test/unit/test_gsas_spin \
	test/unit/test_gsas_pages \
	test/unit/test_gsas_secure \
	test/unit/test_gsas_team \
	test/unit/test_gsas_timeout \
	test/unit/test_gsas_typed \
	test/unit/test_gsas_work \
	test/unit/test_gsas_wrong \
	test/unit/test_dev_bus \
	test/unit/test_dev_full \
	test/unit/test_dev_hello \
	test/unit/test_dev_peer \
	test/unit/test_dev_refused \
	test/unit/test_dev_route \
	test/unit/test_dev_space \
	test/unit/test_dev_table \
	test/unit/test_dma_fail \
	test/unit/test_eq \
	test/unit/test_golden \
	test/unit/test_info \
	test/unit/test_line \
	test/unit/test_list \
	test/unit/test_limit_left \
	test/unit/test_litmus \
	test/unit/test_litmus_msg \
	test/unit/test_mailbox_callback \
	test/unit/test_mailbox_client \
	$(CUSE_TESTS) \
	test/unit/test_mailbox_link \
	test/unit/test_malloc_short \
	test/unit/test_match \
	test/unit/test_direct \
	test/unit/test_dmable \
	test/unit/test_due \
	test/unit/test_edges \
	test/unit/test_mem \
	test/unit/test_missed_events \
	test/unit/test_mr \
	test/unit/test_mr_info \
	test/unit/test_mr_reach \
	test/unit/test_misuse \
	test/unit/test_model \
	test/unit/test_model_file \
	test/unit/test_multi \
	test/unit/test_net_auth \
	test/unit/test_net_dir \
	test/unit/test_net_hold \
	test/unit/test_net_hosts \
	test/unit/test_net_number \
	test/unit/test_net_region \
	test/unit/test_net_room \
	test/unit/test_net_stream \
	test/unit/test_net_idle \
	test/unit/test_net_silence \
	test/unit/test_net_suspend \
	test/unit/test_net_wire \
	test/unit/test_nic \
	test/unit/test_node \
	test/unit/test_number \
	test/unit/test_numbers \
	test/unit/test_object \
	test/unit/test_op \
	test/unit/test_order \
	test/unit/test_page_size \
	test/unit/test_peek \
	test/unit/test_platform \
	test/unit/test_poll \
	test/unit/test_pool \
	test/unit/test_launcher \
	test/unit/test_backlog \
	test/unit/test_reach \
	test/unit/test_receive \
	test/unit/test_refusals \
	test/unit/test_regions \
	test/unit/test_regs \
	test/unit/test_regs_bus \
	test/unit/test_regs_dma \
	test/unit/test_regs_time \
	test/unit/test_hint_way \
	test/unit/test_hints \
	test/unit/test_merge \
	test/unit/test_retry \
	test/unit/test_reuse \
	test/unit/test_rdma \
	test/unit/test_rdma_events \
	test/unit/test_rdma_fail \
	test/unit/test_rkeys \
	test/unit/test_prompt \
	test/unit/test_shared \
	test/unit/test_shortage \
	test/unit/test_safe \
	test/unit/test_sleep_check \
	test/unit/test_sleepers \
	test/unit/test_source \
	test/unit/test_span \
	test/unit/test_start \
	test/unit/test_stats \
	test/unit/test_stream \
	test/unit/test_task \
	test/unit/test_topology \
	test/unit/test_transfer \
	test/unit/test_trigger \
	test/unit/test_revoke_lost \
	test/unit/test_unpinned \
	test/unit/test_wait \
	test/unit/test_way \
	test/unit/test_wire \
	test/unit/test_work \
	test/unit/test_yield

# cmocka programs, too, of seconds of processor time each: make check-unit
# leaves them out
BUSY_TESTS = \
	test/unit/test_data \
	test/unit/test_dev \
	test/unit/test_dev_board \
	test/unit/test_dev_silent \
	test/unit/test_gsas_map \
	test/unit/test_gsas_queue_wait \
	test/unit/test_guard \
	test/unit/test_mem_find \
	test/unit/test_model_link \
	test/unit/test_net_conn \
	test/unit/test_net_dial \
	test/unit/test_net_engine \
	test/unit/test_net_link \
	test/unit/test_op_race \
	test/unit/test_pressure \
	test/unit/test_rma \
	test/unit/test_space \
	test/unit/test_threads

# of GSAS as a whole: with libgsas.so and gsasd
GSAS_TESTS = \
	test/multi/test_gsas_fork \
	test/multi/test_gsas_hostile \
	test/multi/test_gsas_memory \
	test/multi/test_gsas_mix \
	test/multi/test_gsas_queue_all \
	test/multi/test_gsas_secret \
	test/multi/test_gsas_threads \
	test/multi/test_rdma_proc

# of the mailbox: with libunimem-mailbox.so and unimem-mailboxd
MAILBOX_TESTS = \
	test/multi/test_mailbox

# programs that start processes of their own, and kill or crowd them
KILL_TESTS = \
	test/multi/test_crowd \
	test/multi/test_death \
	test/multi/test_gsas_queue_kill \
	test/multi/test_hosts \
	test/multi/test_hosts_cut \
	test/multi/test_hosts_dir \
	test/multi/test_hosts_gsas \
	test/multi/test_hosts_idle \
	test/multi/test_hosts_kill \
	test/multi/test_hosts_outsider \
	test/multi/test_hosts_points \
	test/multi/test_kill \
	test/multi/test_kill_onesided \
	test/multi/test_limits \
	test/multi/test_lost \
	test/multi/test_mailbox_kill \
	test/multi/test_mailbox_start \
	test/multi/test_mix \
	test/multi/test_model_engine \
	test/multi/test_ns \
	test/multi/test_regs_points \
	test/multi/test_regs_proc \
	test/multi/test_regs_stop \
	test/multi/test_revoke \
	test/multi/test_signals \
	test/multi/test_squat

PROC_TESTS = \
	test/multi/test_fork \
	$(GSAS_TESTS) \
	$(MAILBOX_TESTS) \
	$(KILL_TESTS)

# the same, of which a sanitizer sees nothing more: they have a malloc of their
# own, or do what others do, only longer
PLAIN_TESTS = \
	test/multi/test_malloc \
	test/multi/test_malloc_fork \
	test/unit/test_dev_nomem \
	test/unit/test_nomem \
	test/unit/test_quiet

# Of all these make check leaves out MORE_TESTS, which ./quickstart check runs:
# processes killed, the laws under other circumstances, the tools. LONG_TESTS
# are left to check-full: the same laws under rarer circumstances, or by the
# gigabyte. make check-all runs them all.
MORE_TESTS = \
	test/check/check-ep-exanode.sh \
	test/check/check-ep-libfabric.sh \
	test/check/check-ep-sim.sh \
	test/check/check-hal-broken.sh \
	test/check/check-hal-dev.sh \
	test/check/check-hal-exanode.sh \
	test/check/check-hal-fault.sh \
	test/check/check-hal-model.sh \
	test/check/check-hal-mutants.sh \
	test/check/check-hal-net.sh \
	test/check/check-hal-sim.sh \
	$(TOOL_CHECKS) \
	$(KILL_TESTS)

LONG_TESTS = \
	test/check/check-ep-fault.sh \
	test/check/check-ep-stream.sh \
	test/check/check-ep-switches.sh \
	test/check/check-ep-wrap.sh \
	test/check/check-hal-service.sh \
	test/check/check-hal-sim-odd.sh \
	test/check/check-hal-wrap.sh \
	test/multi/test_big

ALL_TESTS = $(UNIT_TESTS) $(BUSY_TESTS) $(PROC_TESTS) $(PLAIN_TESTS) \
	test/multi/test_big $(EP_CHECKS) $(HAL_CHECKS) $(TOOL_CHECKS) $(CHECKS)

# for AddressSanitizer: with --enable-fault-points the one build in which
# processes die at named points, too; the longest goes first
ASAN_TESTS = \
	test/check/check-hal-emu.sh \
	$(BUSY_TESTS) \
	$(UNIT_TESTS) \
	$(PROC_TESTS)

# Of ASAN_TESTS those that ./quickstart check runs: their input is hostile, or
# memory comes, moves and goes, or processes die at fault points. The rest,
# tables and orders, are for check-full.
ASAN_MEMORY_TESTS = \
	test/check/check-hal-emu.sh \
	test/multi/test_kill \
	test/multi/test_hosts_points \
	test/multi/test_regs_points \
	test/multi/test_revoke \
	test/multi/test_death \
	test/multi/test_fork \
	test/multi/test_kill_onesided \
	$(FUZZERS) \
	test/unit/test_address \
	test/unit/test_adopted \
	test/unit/test_alias \
	test/unit/test_atomic \
	test/unit/test_av \
	test/unit/test_cache \
	test/unit/test_cancel \
	test/unit/test_connect \
	test/unit/test_connect_crowd \
	test/unit/test_dev_hello \
	test/unit/test_dev_peer \
	test/unit/test_dev_space \
	test/unit/test_direct \
	test/unit/test_forged \
	test/unit/test_garbage \
	test/unit/test_gsas_batch \
	test/unit/test_gsas_client \
	test/multi/test_gsas_hostile \
	test/unit/test_gsas_jobs \
	test/unit/test_gsas_label \
	test/unit/test_gsas_lies \
	test/unit/test_gsas_team \
	test/unit/test_gsas_life \
	test/unit/test_gsas_misuse \
	test/unit/test_gsas_pages \
	test/unit/test_gsas_pkt \
	test/unit/test_gsas_serve_queue \
	test/unit/test_gsas_wrong \
	test/unit/test_mailbox_callback \
	test/unit/test_mailbox_client \
	$(CUSE_TESTS) \
	test/unit/test_mailbox_link \
	test/unit/test_mem \
	test/unit/test_mem_find \
	test/unit/test_misuse \
	test/unit/test_mr \
	test/unit/test_model \
	test/unit/test_model_file \
	test/unit/test_model_link \
	test/unit/test_multi \
	test/unit/test_net_conn \
	test/unit/test_peek \
	test/unit/test_platform \
	test/unit/test_pool \
	test/unit/test_rdma \
	test/unit/test_rdma_events \
	test/unit/test_rdma_fail \
	test/unit/test_receive \
	test/unit/test_regions \
	test/unit/test_regs \
	test/unit/test_retry \
	test/unit/test_reuse \
	test/unit/test_rma \
	test/unit/test_safe \
	test/unit/test_transfer \
	test/unit/test_trigger \
	test/unit/test_unpinned

# those that run both peers as threads of one process: for ThreadSanitizer,
# which is blind to a second process
TSAN_TESTS = \
	test/check/check-hal-threads.sh \
	$(CUSE_TESTS) \
	test/unit/test_mem_find \
	test/unit/test_mr \
	test/unit/test_asleep \
	test/unit/test_auto \
	test/unit/test_closed \
	test/unit/test_cntr \
	test/unit/test_gsas_client \
	test/unit/test_gsas_life \
	test/unit/test_gsas_batch \
	test/unit/test_gsas_board \
	test/unit/test_gsas_ops \
	test/unit/test_gsas_queue_race \
	test/unit/test_gsas_service \
	test/unit/test_gsas_signal \
	test/unit/test_gsas_stall \
	test/unit/test_gsas_team \
	test/unit/test_gsas_work \
	test/unit/test_guard \
	test/unit/test_litmus \
	test/unit/test_litmus_msg \
	test/unit/test_op_race \
	test/unit/test_poll \
	test/unit/test_rdma \
	test/unit/test_rdma_events \
	test/unit/test_rdma_fail \
	test/unit/test_regions \
	test/unit/test_retry \
	test/unit/test_reuse \
	test/unit/test_safe \
	test/unit/test_sleepers \
	test/unit/test_threads \
	test/unit/test_trigger \
	test/unit/test_wait \
	test/unit/test_work

# those that open no interface: Debian 12's valgrind (3.19) does not know
# pidfd_open, without which there is no emulation (not test_op: to valgrind a
# long double is a double)
VALGRIND_TESTS = \
	test/unit/test_line \
	test/unit/test_list \
	test/unit/test_match \
	test/unit/test_net_auth \
	test/unit/test_net_dir \
	test/unit/test_net_stream \
	test/unit/test_pool \
	test/unit/test_space \
	test/unit/test_span \
	test/unit/test_wire

# what the programs above share; a program has of it what it calls
if HAVE_CMOCKA
TEST_LIB = libtest.la
check_LTLIBRARIES = $(TEST_LIB)
endif
libtest_la_SOURCES = \
	test/fuzz/fuzz.h \
	test/lib/connect_attempts.c \
	test/lib/connect_attempts.h \
	test/lib/dev_shim.c \
	test/lib/dev_shim.h \
	test/lib/ep_av.h \
	test/lib/ep_mem.h \
	test/lib/ep_pair.c \
	test/lib/ep_pair.h \
	test/lib/ep_wait.h \
	test/lib/ep_work.h \
	test/lib/ep_xfer.c \
	test/lib/ep_xfer.h \
	test/lib/gsas_bare_client.h \
	test/lib/gsas_forked.h \
	test/lib/gsas_memory_fixture.h \
	test/lib/gsas_pages_fixture.h \
	test/lib/gsas_processes.c \
	test/lib/cuse_fixture.h \
	test/lib/gsas_processes.h \
	test/lib/gsas_queue_fixture.h \
	test/lib/gsas_service_fixture.c \
	test/lib/gsas_service_fixture.h \
	test/lib/gsas_services.h \
	test/lib/hosts.c \
	test/lib/hosts.h \
	test/lib/litmus.h \
	test/lib/mailbox_procs.h \
	test/lib/memory_group.h \
	test/lib/model_fixture.h \
	test/lib/net_pair.c \
	test/lib/net_pair.h \
	test/lib/os_pair.c \
	test/lib/os_pair.h \
	test/lib/proc_files.c \
	test/lib/proc_files.h \
	test/lib/procs.c \
	test/lib/procs.h \
	test/lib/procs_mem.c \
	test/lib/procs_node.c \
	test/lib/procs_time.c \
	test/lib/procs_traffic.c \
	test/lib/raw_peer.c \
	test/lib/rdma_nodes.h \
	test/lib/raw_peer.h \
	test/lib/regs_engine.h \
	test/lib/regs_fixture.h \
	test/lib/unit.h \
	test/lib/unit_skip.h
if !FUZZ
libtest_la_SOURCES += test/fuzz/fuzz_main.c
endif

check_PROGRAMS += \
	test/check/check_dso \
	test/check/check_info \
	test/check/gsas_tool

if FUZZ
check_PROGRAMS += $(FUZZERS)
TESTS += $(FUZZERS)
else !FUZZ
if HAVE_CMOCKA
check_PROGRAMS += test/conform/hal_conform test/multi/test_big \
	$(UNIT_TESTS) $(BUSY_TESTS) $(PROC_TESTS) $(PLAIN_TESTS)
# the longest goes first
TESTS += test/check/check-hal-emu.sh \
	test/multi/test_fork \
	$(GSAS_TESTS) $(MAILBOX_TESTS) $(BUSY_TESTS) $(UNIT_TESTS) \
	$(PLAIN_TESTS)
EXTRA_TESTS = $(MORE_TESTS) $(LONG_TESTS)
# Never true: automake writes the rules that run a program only for programs in
# TESTS, whatever the condition is.
if NEVER
TESTS += $(KILL_TESTS) test/multi/test_big
endif NEVER
else !HAVE_CMOCKA
TESTS += test/check/check-cmocka.sh
check-local:
	@echo "make check: most tests are missing, as configure did not find" \
		"cmocka. Install it (Debian: libcmocka-dev), configure again."
endif !HAVE_CMOCKA
TESTS += $(CHECKS)
endif !FUZZ
EXTRA_DIST += test/fuzz/corpus test/fuzz/run test/mutants \
	test/check/installed.sh test/check/test_exanode.py
EXTRA_DIST += $(CHECKS) $(TOOL_CHECKS) $(EP_CHECKS) $(HAL_CHECKS) \
	test/check/check-cmocka.sh \
	test/check/alone.sh test/check/check-hal-net-points.sh \
	test/check/check-hal-sim-points.sh \
	test/check/check-hal-threads.sh \
	test/check/at-once.sh test/check/check-lib.sh test/check/thin.sh \
	test/check/two-hosts.sh \
	test/check/cuse_devices.py test/check/mailbox_select.py \
	test/check/source_rules.py test/check/words.txt \
	test/check/check-systemd.sh \
	test/check/ep-lib.sh \
	test/check/systemd-root.sh

# make installcheck: what was installed loads, from where it was installed
installcheck-local: test/check/check_dso
	./test/check/check_dso '$(DESTDIR)$(provdir)/libunimem-fi.so'
	'$(DESTDIR)$(bindir)/unimem_info' --version
	UNM_SRCDIR='$(abs_top_srcdir)' CC='$(CC)' CFLAGS='$(CFLAGS)' \
		DESTDIR='$(DESTDIR)' \
		sh '$(srcdir)/test/check/installed.sh' '$(DESTDIR)$(libdir)'
