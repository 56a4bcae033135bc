# SPDX-License-Identifier: BSD-2-Clause
#
# GSAS: the operations, the service, libgsas.so, gsasd and gsasctl, examples.

# ---- Atomic operations: part of whatever executes them -------------------

# products and sums round as they are written: on every machine alike
noinst_LTLIBRARIES += libgsas_op.la
libgsas_op_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden -ffp-contract=off
libgsas_op_la_CPPFLAGS = $(UNM_CPPFLAGS) -I$(GSAS) -D_GNU_SOURCE=
libgsas_op_la_SOURCES = \
	gsas/op/gsas_op.c \
	gsas/op/gsas_op.h \
	gsas/op/gsas_op_gen.h \
	gsas/op/gsas_op_lock.c \
	gsas/op/gsas_op_lock.h \
	gsas/op/gsas_op_wide.c \
	gsas/op/gsas_op_wide.h

# ---- GSAS: the service's parts that know no HAL ---------------------------

noinst_LTLIBRARIES += libgsas_core.la
libgsas_core_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libgsas_core_la_CPPFLAGS = $(UNM_CPPFLAGS) -I$(GSAS) -I$(PROV) \
	$(COMMON_CPPFLAGS)
libgsas_core_la_LIBADD = libgsas_op.la
libgsas_core_la_SOURCES = \
	gsas/common/gsas_copy.c \
	gsas/common/gsas_copy.h \
	gsas/common/gsas_hold.c \
	gsas/common/gsas_hold.h \
	gsas/common/gsas_pkt.h \
	gsas/common/gsas_queue_take.c \
	gsas/common/gsas_queue_take.h \
	gsas/common/gsas_yield.h \
	gsas/service/gsas_call.c \
	gsas/service/gsas_call.h \
	gsas/service/gsas_extend.c \
	gsas/service/gsas_extend.h \
	gsas/service/gsas_io.h \
	gsas/service/gsas_label.c \
	gsas/service/gsas_label.h \
	gsas/service/gsas_mmu.c \
	gsas/service/gsas_mmu.h \
	gsas/service/gsas_pages.c \
	gsas/service/gsas_pages.h \
	gsas/service/gsas_presence.c \
	gsas/service/gsas_presence.h \
	gsas/service/gsas_queue.c \
	gsas/service/gsas_queue.h \
	gsas/service/gsas_region.h \
	gsas/service/gsas_segment.c \
	gsas/service/gsas_segment.h \
	gsas/service/gsas_serve_queue.c \
	gsas/service/gsas_serve_queue.h \
	gsas/service/gsas_serve_work.c \
	gsas/service/gsas_serve_work.h \
	gsas/service/gsas_service.c \
	gsas/service/gsas_service.h \
	gsas/service/gsas_work.c \
	gsas/service/gsas_work.h

# ---- GSAS: the service on the HAL ------------------------------------------

noinst_LTLIBRARIES += libgsas_board.la
libgsas_board_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libgsas_board_la_CPPFLAGS = $(UNM_CPPFLAGS) -I$(GSAS) \
	-I$(PROV) $(COMMON_CPPFLAGS)
libgsas_board_la_LIBADD = libgsas_core.la
libgsas_board_la_SOURCES = \
	gsas/service/gsas_board.c \
	gsas/service/gsas_board.h \
	gsas/service/gsas_memory.c \
	gsas/service/gsas_memory.h

bin_PROGRAMS += gsasd
gsasd_CPPFLAGS = $(libgsas_board_la_CPPFLAGS)
gsasd_SOURCES = \
	gsas/daemon/gsas_each.c \
	gsas/daemon/gsas_each.h \
	gsas/daemon/gsas_spawn.c \
	gsas/daemon/gsas_spawn.h \
	gsas/daemon/gsas_spin.h \
	gsas/daemon/gsasd.c \
	prov/unimem/util/unm_daemon.c \
	prov/unimem/util/unm_daemon.h
gsasd_LDADD = libgsas_board.la libunimem-hal.la

bin_PROGRAMS += gsasctl
gsasctl_CPPFLAGS = $(libgsas_board_la_CPPFLAGS)
gsasctl_SOURCES = \
	gsas/daemon/gsas_names.c \
	gsas/daemon/gsas_names.h \
	gsas/daemon/gsasctl.c
gsasctl_LDADD = libgsas_client.la libgsas_both.la libgsas_op.la \
	libunimem-hal.la

# ---- GSAS: libgsas.so, for programs ---------------------------------------

noinst_LTLIBRARIES += libgsas_client.la
libgsas_client_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libgsas_client_la_CPPFLAGS = -DGSAS_BINDIR='"$(bindir)"' \
	$(UNM_CPPFLAGS) -I$(GSAS) -I$(PROV) \
	$(COMMON_CPPFLAGS)
libgsas_client_la_SOURCES = \
	gsas/client/gsas_access.c \
	gsas/client/gsas_alloc.c \
	gsas/client/gsas_alloc.h \
	gsas/client/gsas_array.c \
	gsas/client/gsas_batch.c \
	gsas/client/gsas_bulk.c \
	gsas/client/gsas_bulk.h \
	gsas/client/gsas_complete.c \
	gsas/client/gsas_complete.h \
	gsas/client/gsas_conn.c \
	gsas/client/gsas_conn.h \
	gsas/client/gsas_connect.c \
	gsas/client/gsas_connect.h \
	gsas/client/gsas_direct.c \
	gsas/client/gsas_direct.h \
	gsas/client/gsas_error.c \
	gsas/client/gsas_fork.c \
	gsas/client/gsas_get.c \
	gsas/client/gsas_job.c \
	gsas/client/gsas_job.h \
	gsas/client/gsas_launcher.c \
	gsas/client/gsas_launcher.h \
	gsas/client/gsas_log.c \
	gsas/client/gsas_log.h \
	gsas/client/gsas_map.c \
	gsas/client/gsas_port.c \
	gsas/client/gsas_port.h \
	gsas/client/gsas_progress.c \
	gsas/client/gsas_progress.h \
	gsas/client/gsas_published.c \
	gsas/client/gsas_queue_client.c \
	gsas/client/gsas_queue_handle.c \
	gsas/client/gsas_queue_handle.h \
	gsas/client/gsas_request.c \
	gsas/client/gsas_request.h \
	gsas/client/gsas_segments.c \
	gsas/client/gsas_segments.h \
	gsas/client/gsas_signal.c \
	gsas/client/gsas_signal.h \
	gsas/client/gsas_start.c \
	gsas/client/gsas_start.h \
	gsas/client/gsas_symmetric.c \
	gsas/client/gsas_team.c \
	gsas/client/gsas_team.h \
	gsas/client/gsas_thread.c \
	gsas/client/gsas_thread.h \
	gsas/client/gsas_wait.c \
	gsas/client/gsas_wait.h \
	gsas/client/gsas_watch.c \
	gsas/client/gsas_watch.h \
	gsas/client/gsas_window.c \
	gsas/client/gsas_window.h \
	prov/unimem/util/unm_start.c \
	prov/unimem/util/unm_start.h

# what it shares with the service (once more, as the two are in one program of
# the tests only)
noinst_LTLIBRARIES += libgsas_both.la
libgsas_both_la_CFLAGS = $(libgsas_client_la_CFLAGS)
libgsas_both_la_CPPFLAGS = $(libgsas_client_la_CPPFLAGS)
libgsas_both_la_SOURCES = \
	gsas/common/gsas_copy.c \
	gsas/common/gsas_hold.c \
	gsas/common/gsas_queue_take.c

# current:revision:age - raise current when gsas.h or atomic.h changes
lib_LTLIBRARIES += libgsas.la
libgsas_la_SOURCES =
libgsas_la_LIBADD = libgsas_client.la libgsas_both.la libgsas_op.la \
	libunimem-hal.la
# nodelete: threads that end call it
libgsas_la_LDFLAGS = $(AM_LDFLAGS) $(UNM_LDFLAGS) -version-info 1:0:1 \
	-Wl,-z,nodelete

gsasincludedir = $(includedir)/unimem
gsasinclude_HEADERS = gsas/gsas.h gsas/gsas_generic.h gsas/gsas_types.h \
	gsas/atomic.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = gsas.pc

# where systemd does not look: who wants a service on each board copies it
unitdir = $(datadir)/unimem
unit_DATA = gsasd@.service
EXTRA_DIST += gsas/daemon/gsasd@.service.in
CLEANFILES += $(unit_DATA)

$(unit_DATA): gsas/daemon/gsasd@.service.in Makefile
	$(AM_V_GEN)$(SED) 's,[@]bindir@,$(bindir),' \
		'$(srcdir)/gsas/daemon/gsasd@.service.in' >$@

# ---- Examples: read by newcomers, run by check-gsas ------------------------

exampledir = $(docdir)/examples
dist_example_DATA = \
	gsas/examples/counter.c \
	gsas/examples/halo.c \
	gsas/examples/list.c \
	gsas/examples/tree.c

EXAMPLES = gsas/examples/counter gsas/examples/halo gsas/examples/list \
	gsas/examples/tree
check_PROGRAMS += $(EXAMPLES)
# themselves, no wrapper scripts: services start them anew
UNWRAPPED = $(AM_LDFLAGS) -no-install
gsas_examples_counter_LDADD = libgsas.la
gsas_examples_counter_LDFLAGS = $(UNWRAPPED)
gsas_examples_halo_LDADD = libgsas.la
gsas_examples_halo_LDFLAGS = $(UNWRAPPED)
gsas_examples_list_LDADD = libgsas.la
gsas_examples_list_LDFLAGS = $(UNWRAPPED)
gsas_examples_tree_LDADD = libgsas.la
gsas_examples_tree_LDFLAGS = $(UNWRAPPED)
