# SPDX-License-Identifier: BSD-2-Clause
#
# The provider. A new source is one line in the list.

# ---- Provider: libunimem-fi.so, loaded by libfabric ----------------------

noinst_LTLIBRARIES += libunm.la
libunm_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libunm_la_CPPFLAGS = $(UNM_CPPFLAGS) -I$(PROV) \
	-I$(GSAS) $(COMMON_CPPFLAGS)
libunm_la_LIBADD = libgsas_op.la
libunm_la_SOURCES = \
	prov/unimem/api/unm_alias.c \
	prov/unimem/api/unm_alias.h \
	prov/unimem/api/unm_atomic.c \
	prov/unimem/api/unm_atomic.h \
	prov/unimem/api/unm_av.c \
	prov/unimem/api/unm_av.h \
	prov/unimem/api/unm_cntr.c \
	prov/unimem/api/unm_cntr.h \
	prov/unimem/api/unm_cq.c \
	prov/unimem/api/unm_cq.h \
	prov/unimem/api/unm_deferred.c \
	prov/unimem/api/unm_deferred.h \
	prov/unimem/api/unm_domain.c \
	prov/unimem/api/unm_domain.h \
	prov/unimem/api/unm_ep.c \
	prov/unimem/api/unm_ep.h \
	prov/unimem/api/unm_ep_limits.c \
	prov/unimem/api/unm_ep_limits.h \
	prov/unimem/api/unm_eq.c \
	prov/unimem/api/unm_eq.h \
	prov/unimem/api/unm_mr.c \
	prov/unimem/api/unm_mr.h \
	prov/unimem/api/unm_msg.c \
	prov/unimem/api/unm_msg.h \
	prov/unimem/api/unm_poll_set.c \
	prov/unimem/api/unm_poll_set.h \
	prov/unimem/api/unm_rma.c \
	prov/unimem/api/unm_rma.h \
	prov/unimem/api/unm_tagged.c \
	prov/unimem/api/unm_tagged.h \
	prov/unimem/api/unm_wait.c \
	prov/unimem/api/unm_wait.h \
	prov/unimem/api/unm_wait_set.c \
	prov/unimem/api/unm_wait_set.h \
	prov/unimem/core/unm_av_table.c \
	prov/unimem/core/unm_av_table.h \
	prov/unimem/core/unm_buf.c \
	prov/unimem/core/unm_buf.h \
	prov/unimem/core/unm_cntr_value.c \
	prov/unimem/core/unm_cntr_value.h \
	prov/unimem/core/unm_complete.c \
	prov/unimem/core/unm_complete.h \
	prov/unimem/core/unm_cq_ring.c \
	prov/unimem/core/unm_cq_ring.h \
	prov/unimem/core/unm_domain_state.c \
	prov/unimem/core/unm_domain_state.h \
	prov/unimem/core/unm_ep_state.h \
	prov/unimem/core/unm_ep_wake.c \
	prov/unimem/core/unm_ep_wake.h \
	prov/unimem/core/unm_hint_way.h \
	prov/unimem/core/unm_hints.h \
	prov/unimem/core/unm_idle.c \
	prov/unimem/core/unm_idle.h \
	prov/unimem/core/unm_match.c \
	prov/unimem/core/unm_match.h \
	prov/unimem/core/unm_named.c \
	prov/unimem/core/unm_named.h \
	prov/unimem/core/unm_obj.h \
	prov/unimem/core/unm_op.c \
	prov/unimem/core/unm_op.h \
	prov/unimem/core/unm_peer.c \
	prov/unimem/core/unm_peer.h \
	prov/unimem/core/unm_peer_tx.c \
	prov/unimem/core/unm_peer_tx.h \
	prov/unimem/core/unm_region.c \
	prov/unimem/core/unm_region.h \
	prov/unimem/core/unm_space.c \
	prov/unimem/core/unm_space.h \
	prov/unimem/core/unm_stats.h \
	prov/unimem/core/unm_wake.c \
	prov/unimem/core/unm_wake.h \
	prov/unimem/core/unm_way.h \
	prov/unimem/core/unm_wire.c \
	prov/unimem/core/unm_wire.h \
	prov/unimem/msg/unm_long.c \
	prov/unimem/msg/unm_long.h \
	prov/unimem/msg/unm_lost.c \
	prov/unimem/msg/unm_lost.h \
	prov/unimem/msg/unm_recv.c \
	prov/unimem/msg/unm_recv.h \
	prov/unimem/msg/unm_rendezvous.c \
	prov/unimem/msg/unm_rdv_way.h \
	prov/unimem/msg/unm_rendezvous.h \
	prov/unimem/msg/unm_rx_op.c \
	prov/unimem/msg/unm_rx_op.h \
	prov/unimem/msg/unm_send.c \
	prov/unimem/msg/unm_send.h \
	prov/unimem/msg/unm_tx.h \
	prov/unimem/progress/unm_auto.c \
	prov/unimem/progress/unm_auto.h \
	prov/unimem/progress/unm_gauge.c \
	prov/unimem/progress/unm_gauge.h \
	prov/unimem/progress/unm_peer_life.c \
	prov/unimem/progress/unm_peer_life.h \
	prov/unimem/progress/unm_progress.c \
	prov/unimem/progress/unm_progress.h \
	prov/unimem/progress/unm_reach.c \
	prov/unimem/progress/unm_reach.h \
	prov/unimem/progress/unm_revoke.c \
	prov/unimem/progress/unm_revoke.h \
	prov/unimem/progress/unm_sleep.c \
	prov/unimem/progress/unm_sleep.h \
	prov/unimem/rma/unm_bounce.c \
	prov/unimem/rma/unm_bounce.h \
	prov/unimem/rma/unm_cache.c \
	prov/unimem/rma/unm_cache.h \
	prov/unimem/rma/unm_direct.c \
	prov/unimem/rma/unm_direct.h \
	prov/unimem/rma/unm_mem.c \
	prov/unimem/rma/unm_mem.h \
	prov/unimem/rma/unm_onesided.c \
	prov/unimem/rma/unm_onesided.h \
	prov/unimem/rma/unm_prompt.c \
	prov/unimem/rma/unm_prompt.h \
	prov/unimem/rma/unm_request.c \
	prov/unimem/rma/unm_request.h \
	prov/unimem/rma/unm_rkey.c \
	prov/unimem/rma/unm_rkey.h \
	prov/unimem/rma/unm_target.c \
	prov/unimem/rma/unm_target.h \
	prov/unimem/trigger/unm_trigger.c \
	prov/unimem/trigger/unm_trigger.h \
	prov/unimem/trigger/unm_work.c \
	prov/unimem/trigger/unm_work.h \
	prov/unimem/unm_addr.c \
	prov/unimem/unm_addr.h \
	prov/unimem/unm_env.c \
	prov/unimem/unm_env.h \
	prov/unimem/unm_info.c \
	prov/unimem/unm_info.h \
	prov/unimem/unm_log.c \
	prov/unimem/unm_log.h \
	prov/unimem/unm_nic.c \
	prov/unimem/unm_nic.h \
	prov/unimem/unm_nosys.c \
	prov/unimem/unm_nosys.h \
	prov/unimem/unm_offer.h \
	prov/unimem/unm_prov.c \
	prov/unimem/unm_refuse.c \
	prov/unimem/unm_refuse.h \
	prov/unimem/util/unm_arena.h \
	prov/unimem/util/unm_clock.h \
	prov/unimem/util/unm_list.h \
	prov/unimem/util/unm_map_again.h \
	prov/unimem/util/unm_maps.c \
	prov/unimem/util/unm_maps.h \
	prov/unimem/util/unm_pool.c \
	prov/unimem/util/unm_pool.h \
	prov/unimem/util/unm_random.h \
	prov/unimem/util/unm_span.c \
	prov/unimem/util/unm_span.h \
	prov/unimem/util/unm_yield.h

# beside libfabric's own, as <rdma/fi_ext_unimem.h>
rdmaincludedir = $(includedir)/rdma
rdmainclude_HEADERS = prov/unimem/fi_ext_unimem.h

# $ORIGIN/..: the HAL is found although the whole tree was moved
provdir = $(libdir)/libfabric
prov_LTLIBRARIES = libunimem-fi.la
libunimem_fi_la_SOURCES =
libunimem_fi_la_LIBADD = libunm.la libunimem-hal.la $(LIBFABRIC_LIBS)
libunimem_fi_la_LDFLAGS = $(AM_LDFLAGS) $(UNM_LDFLAGS) \
	-module -avoid-version -shared \
	-export-symbols-regex '^fi_prov_ini$$' \
	'-Wl,-rpath,$$ORIGIN/..'

# libtool links the provider once more at install, against the installed HAL.
# (By a variable: automake takes a rule of that name for one in its own place.)
INSTALL_PROV = install-provLTLIBRARIES
$(INSTALL_PROV): install-libLTLIBRARIES
