# SPDX-License-Identifier: BSD-2-Clause
#
# How test programs are compiled and linked that need more than the common
# flags. Most jobs of check-full have this file among their inputs. Few have
# test/local.mk, as that changes with each new test (scripts/full.list).

test_check_check_dso_LDADD = $(LIBFABRIC_LIBS)
test_unit_test_gsas_secure_CPPFLAGS = $(AM_CPPFLAGS) -DGSAS_BINDIR='"$(bindir)"'

# to run the tests on a system without cross-memory attach
if HAVE_SECCOMP
check_PROGRAMS += test/lib/no-cma
test_lib_no_cma_CPPFLAGS = $(SECCOMP_CFLAGS) $(AM_CPPFLAGS)
test_lib_no_cma_LDADD = $(SECCOMP_LIBS)
endif

WITH_RDMA = libtest.la libunm_rdma.la libgsas_client.la libgsas_board.la \
	libgsas_core.la libunm_hal.la $(CMOCKA_LIBS) $(LIBFABRIC_LIBS)
test_unit_test_rdma_LDADD = $(WITH_RDMA)
test_unit_test_start_LDADD = $(WITH_RDMA)
test_unit_test_topology_LDADD = $(WITH_RDMA)
test_unit_test_topology_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CFLAGS)
test_unit_test_rdma_events_LDADD = $(WITH_RDMA)
test_unit_test_rdma_fail_LDADD = $(WITH_RDMA)
test_unit_test_gsas_lies_LDADD = $(WITH_RDMA)

# one HAL in a process: the shared one, which libgsas and the provider have
WITH_GSAS = libtest.la libgsas.la libunimem-hal.la libgsas_op.la \
	$(LIBFABRIC_LIBS)
check_PROGRAMS += test/multi/gsas_forked
test_multi_gsas_forked_LDADD = libgsas.la
test_multi_gsas_forked_LDFLAGS = $(UNWRAPPED)
test_multi_test_gsas_fork_LDADD = $(WITH_GSAS)
test_multi_test_gsas_fork_LDFLAGS = $(UNWRAPPED)
test_multi_test_gsas_hostile_LDADD = $(WITH_GSAS)
test_multi_test_gsas_hostile_LDFLAGS = $(UNWRAPPED)
test_multi_test_hosts_gsas_LDADD = $(WITH_GSAS)
test_multi_test_hosts_gsas_LDFLAGS = $(UNWRAPPED)
test_multi_test_gsas_mix_LDADD = $(WITH_GSAS)
test_multi_test_gsas_mix_LDFLAGS = $(UNWRAPPED)
test_multi_test_gsas_queue_all_LDADD = $(WITH_GSAS)
test_multi_test_gsas_queue_all_LDFLAGS = $(UNWRAPPED)
test_multi_test_gsas_threads_LDADD = $(WITH_GSAS)
test_multi_test_gsas_threads_LDFLAGS = $(UNWRAPPED)
test_multi_test_rdma_proc_LDADD = libunimem-rdma.la $(WITH_GSAS)
test_multi_test_rdma_proc_LDFLAGS = $(UNWRAPPED)

test_unit_test_malloc_short_SOURCES = malloc/malloc_arena.c \
	malloc/malloc_arena.h malloc/malloc_make.c test/unit/test_malloc_short.c
test_unit_test_malloc_short_CPPFLAGS = $(AM_CPPFLAGS) -I$(MALLOC)
# their malloc() is that of the preload, and no call of it may be left out
test_multi_test_malloc_CFLAGS = $(AM_CFLAGS) -fno-builtin
test_multi_test_malloc_LDADD = libunimem-malloc.la $(CMOCKA_LIBS)
test_multi_test_malloc_fork_CFLAGS = $(AM_CFLAGS) -fno-builtin
test_multi_test_malloc_fork_LDADD = libunimem-malloc.la $(CMOCKA_LIBS)

test_unit_test_mailbox_callback_SOURCES = mailbox/client/mbox_callback.c \
	test/unit/test_mailbox_callback.c
test_unit_test_mailbox_callback_LDADD = $(CMOCKA_LIBS)
test_unit_test_mailbox_client_LDADD = libmbox_daemon.la $(LDADD)
test_unit_test_mailbox_link_LDADD = libmbox_daemon.la $(LDADD)
test_unit_test_mailbox_cuse_CPPFLAGS = $(AM_CPPFLAGS) $(FUSE3_CFLAGS)
test_unit_test_mailbox_cuse_LDADD = libmbox_cuse.la $(CMOCKA_LIBS)
test_unit_test_mailbox_cuse_ends_CPPFLAGS = $(AM_CPPFLAGS) $(FUSE3_CFLAGS)
test_unit_test_mailbox_cuse_ends_LDADD = libmbox_cuse.la $(CMOCKA_LIBS)
WITH_MAILBOX = libtest.la libunimem-mailbox.la libunimem-hal.la \
	$(LIBFABRIC_LIBS)
test_multi_test_mailbox_LDADD = $(WITH_MAILBOX)
test_multi_test_mailbox_LDFLAGS = $(UNWRAPPED)
test_multi_test_mailbox_kill_LDADD = $(WITH_MAILBOX)
test_multi_test_mailbox_kill_LDFLAGS = $(UNWRAPPED)
test_multi_test_mailbox_start_LDADD = $(WITH_MAILBOX)
test_multi_test_mailbox_start_LDFLAGS = $(UNWRAPPED)

# something between us and the system
test_unit_test_gsas_lies_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=gsas_region_map_info
test_unit_test_gsas_batch_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=gsas_get_start -Wl,--wrap=gsas_put_start \
	-Wl,--wrap=gsas_update64_post
test_unit_test_gsas_board_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc \
	-Wl,--wrap=hal_memory_left
test_unit_test_gsas_budget_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=poll
test_unit_test_gsas_jobs_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc \
	-Wl,--wrap=free -Wl,--wrap=mmap
test_unit_test_gsas_pages_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=madvise \
	-Wl,--wrap=sysconf
test_unit_test_gsas_serve_queue_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=madvise -Wl,--wrap=sysconf
test_unit_test_gsas_spawn_SOURCES = gsas/daemon/gsas_spawn.c \
	gsas/daemon/gsas_spawn.h test/unit/test_gsas_spawn.c
test_unit_test_gsas_queue_wait_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=gsas_conn_try_send
test_unit_test_gsas_spawn_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=syscall
test_unit_test_gsas_spin_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=clock_gettime -Wl,--wrap=sched_yield
test_unit_test_gsas_work_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pthread_create
test_unit_test_page_size_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=madvise \
	-Wl,--wrap=mmap -Wl,--wrap=sysconf
test_unit_test_shortage_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=aligned_alloc
test_unit_test_yield_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime \
	-Wl,--wrap=getppid -Wl,--wrap=sched_yield

test_unit_test_safe_SOURCES = \
	test/unit/safe.h \
	test/unit/safe_acts.c \
	test/unit/test_safe.c

test_conform_hal_conform_SOURCES = \
	test/broken/broken.c \
	test/broken/broken.h \
	test/broken/broken_alias.c \
	test/broken/broken_conn.c \
	test/broken/broken_dma.c \
	test/broken/broken_iface0.c \
	test/broken/broken_pkt.c \
	test/broken/broken_shared.c \
	test/conform/hal_conform.c \
	test/conform/hal_conform.h \
	test/conform/hal_conform_alias.c \
	test/conform/hal_conform_child.c \
	test/conform/hal_conform_close.c \
	test/conform/hal_conform_conn.c \
	test/conform/hal_conform_dma.c \
	test/conform/hal_conform_engine.c \
	test/conform/hal_conform_exec.c \
	test/conform/hal_conform_frames.c \
	test/conform/hal_conform_kill.c \
	test/conform/hal_conform_leak.c \
	test/conform/hal_conform_mem.c \
	test/conform/hal_conform_net.c \
	test/conform/hal_conform_pkt.c \
	test/conform/hal_conform_proc.c \
	test/conform/hal_conform_service.c \
	test/conform/hal_conform_shared.c \
	test/conform/hal_conform_sleep.c \
	test/conform/hal_conform_space.c \
	test/conform/hal_conform_spawn.c \
	test/conform/hal_conform_stream.c \
	test/conform/hal_conform_util.c \
	test/conform/hal_conform_wide.c

# hal_conform_engine.c is the engine for other hosts
test_conform_hal_conform_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=net_engine_get \
	-Wl,--wrap=net_crypto_get

# its memory lies where the linker says, in each process
check_PROGRAMS += test/conform/exec_heir
test_conform_exec_heir_SOURCES = test/conform/exec_heir.c
test_conform_exec_heir_CFLAGS = $(UNM_CFLAGS) -fno-pie
test_conform_exec_heir_LDFLAGS = -no-pie
test_conform_exec_heir_LDADD =
EXTRA_test_conform_hal_conform_DEPENDENCIES = test/conform/exec_heir
if NET
EXTRA_test_conform_hal_conform_DEPENDENCIES += libunimem-net.la
EXTRA_test_unit_test_net_engine_DEPENDENCIES = libunimem-net.la
endif
EXTRA_test_multi_test_gsas_fork_DEPENDENCIES = test/multi/gsas_forked
# the examples that it runs on two hosts
EXTRA_test_multi_test_hosts_gsas_DEPENDENCIES = $(EXAMPLES) \
	$(MAILBOX_EXAMPLES) $(RDMA_EXAMPLES)

if FUZZ
# their main() is libFuzzer's
LINK_FUZZER = $(AM_LDFLAGS) -fsanitize=fuzzer
test_fuzz_fuzz_address_LDFLAGS = $(LINK_FUZZER)
test_fuzz_fuzz_connection_LDFLAGS = $(LINK_FUZZER)
test_fuzz_fuzz_gsas_LDFLAGS = $(LINK_FUZZER)
test_fuzz_fuzz_gsas_pages_LDFLAGS = $(LINK_FUZZER)
test_fuzz_fuzz_hosts_LDFLAGS = $(LINK_FUZZER)
test_fuzz_fuzz_model_LDFLAGS = $(LINK_FUZZER)
test_fuzz_fuzz_net_LDFLAGS = $(LINK_FUZZER)
test_fuzz_fuzz_param_LDFLAGS = $(LINK_FUZZER)
test_fuzz_fuzz_platform_LDFLAGS = $(LINK_FUZZER)
test_fuzz_fuzz_wire_LDFLAGS = $(LINK_FUZZER)
endif FUZZ
