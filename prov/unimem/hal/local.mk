# SPDX-License-Identifier: BSD-2-Clause
#
# The HAL. A new source is one line in the list.

# ---- HAL: libunimem-hal.so, private to this project ----------------------

noinst_LTLIBRARIES += libunm_hal.la
libunm_hal_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libunm_hal_la_CPPFLAGS = $(UNM_CPPFLAGS) -I$(PROV) \
	$(COMMON_CPPFLAGS) $(HWLOC_CFLAGS) -DHAL_MODEL_DIR='"$(pkgdatadir)"'
libunm_hal_la_SOURCES = \
	prov/unimem/hal/dev/hal_dev.c \
	prov/unimem/hal/dev/hal_dev.h \
	prov/unimem/hal/dev/hal_dev_bus.c \
	prov/unimem/hal/dev/hal_dev_bus.h \
	prov/unimem/hal/dev/hal_dev_conf.c \
	prov/unimem/hal/dev/hal_dev_conf.h \
	prov/unimem/hal/dev/hal_dev_conn.c \
	prov/unimem/hal/dev/hal_dev_conn.h \
	prov/unimem/hal/dev/hal_dev_dma.c \
	prov/unimem/hal/dev/hal_dev_dma.h \
	prov/unimem/hal/dev/hal_dev_echo.c \
	prov/unimem/hal/dev/hal_dev_echo.h \
	prov/unimem/hal/dev/hal_dev_engine.c \
	prov/unimem/hal/dev/hal_dev_engine.h \
	prov/unimem/hal/dev/hal_dev_life.c \
	prov/unimem/hal/dev/hal_dev_life.h \
	prov/unimem/hal/dev/hal_dev_mbox.c \
	prov/unimem/hal/dev/hal_dev_mbox.h \
	prov/unimem/hal/dev/hal_dev_mem.c \
	prov/unimem/hal/dev/hal_dev_mem.h \
	prov/unimem/hal/dev/hal_dev_peer.c \
	prov/unimem/hal/dev/hal_dev_peer.h \
	prov/unimem/hal/dev/hal_dev_pif.c \
	prov/unimem/hal/dev/hal_dev_pif.h \
	prov/unimem/hal/dev/hal_dev_region.c \
	prov/unimem/hal/dev/hal_dev_region.h \
	prov/unimem/hal/dev/hal_dev_ring.c \
	prov/unimem/hal/dev/hal_dev_ring.h \
	prov/unimem/hal/dev/hal_dev_table.c \
	prov/unimem/hal/dev/hal_dev_table.h \
	prov/unimem/hal/dev/hal_dev_types.h \
	prov/unimem/hal/dev/hal_dev_wire.h \
	prov/unimem/hal/dev/hal_kdev.h \
	prov/unimem/hal/dev/hal_mmio.h \
	prov/unimem/hal/dev/hal_mmio_dev.c \
	prov/unimem/hal/dev/hal_regs.h \
	prov/unimem/hal/emu/hal_emu.c \
	prov/unimem/hal/emu/hal_emu_alias.c \
	prov/unimem/hal/emu/hal_emu_alias.h \
	prov/unimem/hal/emu/hal_emu_attach.c \
	prov/unimem/hal/emu/hal_emu_attach.h \
	prov/unimem/hal/emu/hal_emu_board.c \
	prov/unimem/hal/emu/hal_emu_board.h \
	prov/unimem/hal/emu/hal_emu_conn.c \
	prov/unimem/hal/emu/hal_emu_conn.h \
	prov/unimem/hal/emu/hal_emu_connect.c \
	prov/unimem/hal/emu/hal_emu_connect.h \
	prov/unimem/hal/emu/hal_emu_dma.c \
	prov/unimem/hal/emu/hal_emu_dma.h \
	prov/unimem/hal/emu/hal_emu_engine.c \
	prov/unimem/hal/emu/hal_emu_engine.h \
	prov/unimem/hal/emu/hal_emu_event.c \
	prov/unimem/hal/emu/hal_emu_event.h \
	prov/unimem/hal/emu/hal_emu_link.c \
	prov/unimem/hal/emu/hal_emu_link.h \
	prov/unimem/hal/emu/hal_emu_model.c \
	prov/unimem/hal/emu/hal_emu_model.h \
	prov/unimem/hal/emu/hal_emu_msg.c \
	prov/unimem/hal/emu/hal_emu_msg.h \
	prov/unimem/hal/emu/hal_emu_name.c \
	prov/unimem/hal/emu/hal_emu_name.h \
	prov/unimem/hal/emu/hal_emu_proof.c \
	prov/unimem/hal/emu/hal_emu_proof.h \
	prov/unimem/hal/emu/hal_emu_recv.c \
	prov/unimem/hal/emu/hal_emu_recv.h \
	prov/unimem/hal/emu/hal_emu_sleep.c \
	prov/unimem/hal/emu/hal_emu_sleep.h \
	prov/unimem/hal/emu/hal_emu_stamp.c \
	prov/unimem/hal/emu/hal_emu_stamp.h \
	prov/unimem/hal/emu/hal_emu_types.h \
	prov/unimem/hal/emu/hal_emu_wire.h \
	prov/unimem/hal/hal.c \
	prov/unimem/hal/hal.h \
	prov/unimem/hal/hal_backend.h \
	prov/unimem/hal/hal_board.c \
	prov/unimem/hal/hal_board.h \
	prov/unimem/hal/hal_copy.h \
	prov/unimem/hal/hal_dma.h \
	prov/unimem/hal/hal_export.h \
	prov/unimem/hal/hal_fault.c \
	prov/unimem/hal/hal_fault.h \
	prov/unimem/hal/hal_fault_point.c \
	prov/unimem/hal/hal_fault_point.h \
	prov/unimem/hal/hal_launcher.c \
	prov/unimem/hal/hal_launcher.h \
	prov/unimem/hal/hal_limit.c \
	prov/unimem/hal/hal_limit.h \
	prov/unimem/hal/hal_line.c \
	prov/unimem/hal/hal_line.h \
	prov/unimem/hal/hal_lock.c \
	prov/unimem/hal/hal_lock.h \
	prov/unimem/hal/hal_log.c \
	prov/unimem/hal/hal_log.h \
	prov/unimem/hal/hal_map.c \
	prov/unimem/hal/hal_map.h \
	prov/unimem/hal/hal_meet.c \
	prov/unimem/hal/hal_meet.h \
	prov/unimem/hal/hal_model.c \
	prov/unimem/hal/hal_model.h \
	prov/unimem/hal/hal_time.c \
	prov/unimem/hal/hal_time.h \
	prov/unimem/hal/hal_packet.h \
	prov/unimem/hal/hal_page.c \
	prov/unimem/hal/hal_page.h \
	prov/unimem/hal/hal_param.c \
	prov/unimem/hal/hal_param.h \
	prov/unimem/hal/hal_peer.c \
	prov/unimem/hal/hal_peer.h \
	prov/unimem/hal/hal_pid.c \
	prov/unimem/hal/hal_pid.h \
	prov/unimem/hal/hal_process.h \
	prov/unimem/hal/hal_task.c \
	prov/unimem/hal/hal_task.h \
	prov/unimem/hal/hal_types.h \
	prov/unimem/hal/hal_window.h \
	prov/unimem/hal/net/hal_net.c \
	prov/unimem/hal/net/hal_net.h \
	prov/unimem/hal/net/hal_net_auth.c \
	prov/unimem/hal/net/hal_net_auth.h \
	prov/unimem/hal/net/hal_net_conn.c \
	prov/unimem/hal/net/hal_net_conn.h \
	prov/unimem/hal/net/hal_net_connect.c \
	prov/unimem/hal/net/hal_net_connect.h \
	prov/unimem/hal/net/hal_net_dir.c \
	prov/unimem/hal/net/hal_net_dir.h \
	prov/unimem/hal/net/hal_net_dma.c \
	prov/unimem/hal/net/hal_net_dma.h \
	prov/unimem/hal/net/hal_net_engine.h \
	prov/unimem/hal/net/hal_net_host.c \
	prov/unimem/hal/net/hal_net_host.h \
	prov/unimem/hal/net/hal_net_hosts.c \
	prov/unimem/hal/net/hal_net_hosts.h \
	prov/unimem/hal/net/hal_net_key.c \
	prov/unimem/hal/net/hal_net_key.h \
	prov/unimem/hal/net/hal_net_load.c \
	prov/unimem/hal/net/hal_net_load.h \
	prov/unimem/hal/net/hal_net_loss.c \
	prov/unimem/hal/net/hal_net_loss.h \
	prov/unimem/hal/net/hal_net_meet.c \
	prov/unimem/hal/net/hal_net_meet.h \
	prov/unimem/hal/net/hal_net_peer.c \
	prov/unimem/hal/net/hal_net_peer.h \
	prov/unimem/hal/net/hal_net_recv.c \
	prov/unimem/hal/net/hal_net_recv.h \
	prov/unimem/hal/net/hal_net_redial.c \
	prov/unimem/hal/net/hal_net_redial.h \
	prov/unimem/hal/net/hal_net_region.c \
	prov/unimem/hal/net/hal_net_region.h \
	prov/unimem/hal/net/hal_net_send.c \
	prov/unimem/hal/net/hal_net_send.h \
	prov/unimem/hal/net/hal_net_silence.c \
	prov/unimem/hal/net/hal_net_silence.h \
	prov/unimem/hal/net/hal_net_state.c \
	prov/unimem/hal/net/hal_net_state.h \
	prov/unimem/hal/net/hal_net_stream.c \
	prov/unimem/hal/net/hal_net_stream.h \
	prov/unimem/hal/net/hal_net_suspend.c \
	prov/unimem/hal/net/hal_net_suspend.h \
	prov/unimem/hal/net/hal_net_types.h \
	prov/unimem/hal/sim/hal_sim.c \
	prov/unimem/hal/sim/hal_sim.h \
	prov/unimem/hal/sim/hal_sim_box.c \
	prov/unimem/hal/sim/hal_sim_box.h \
	prov/unimem/hal/sim/hal_sim_cdma.c \
	prov/unimem/hal/sim/hal_sim_cdma.h \
	prov/unimem/hal/sim/hal_sim_check.c \
	prov/unimem/hal/sim/hal_sim_check.h \
	prov/unimem/hal/sim/hal_sim_join.c \
	prov/unimem/hal/sim/hal_sim_join.h \
	prov/unimem/hal/sim/hal_sim_kdev.c \
	prov/unimem/hal/sim/hal_sim_kdev.h \
	prov/unimem/hal/sim/hal_sim_mem.c \
	prov/unimem/hal/sim/hal_sim_mem.h \
	prov/unimem/hal/sim/hal_sim_state.h \
	prov/unimem/hal/sim/hal_sim_store.c \
	prov/unimem/hal/sim/hal_sim_store.h \
	prov/unimem/hal/sim/hal_sim_types.h \
	prov/unimem/hal/sim/hal_sim_xfer.c \
	prov/unimem/hal/sim/hal_sim_xfer.h

# the figures that FI_UNIMEM_MODEL=exanode names
dist_pkgdata_DATA = prov/unimem/hal/exanode.model

# current:revision:age - raise current when hal.h or a header
# that it includes changes
lib_LTLIBRARIES += libunimem-hal.la
libunimem_hal_la_SOURCES =
libunimem_hal_la_LIBADD = libunm_hal.la
libunimem_hal_la_LDFLAGS = $(AM_LDFLAGS) $(UNM_LDFLAGS) -version-info 0:0:0

# ---- Modules for other hosts: loaded when one is met ----

# Nothing else links libsodium and UCX. UCX is loaded after a good proof only.
if NET
pkglib_LTLIBRARIES = libunimem-net.la libunimem-net-auth.la
libunimem_net_auth_la_SOURCES = prov/unimem/hal/net/hal_net_sodium.c
libunimem_net_auth_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libunimem_net_auth_la_CPPFLAGS = $(UNM_CPPFLAGS) -I$(PROV) $(COMMON_CPPFLAGS) \
	$(SODIUM_CFLAGS)
libunimem_net_auth_la_LIBADD = $(SODIUM_LIBS)
libunimem_net_auth_la_LDFLAGS = $(AM_LDFLAGS) $(UNM_LDFLAGS) \
	-module -avoid-version -shared -export-symbols-regex '^hal_net_crypto$$'
libunimem_net_la_SOURCES = \
	prov/unimem/hal/net/hal_net_stuck.c \
	prov/unimem/hal/net/hal_net_stuck.h \
	prov/unimem/hal/net/hal_net_ucx.c
libunimem_net_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libunimem_net_la_CPPFLAGS = $(UNM_CPPFLAGS) -I$(PROV) $(COMMON_CPPFLAGS) \
	$(UCX_CFLAGS)
libunimem_net_la_LIBADD = $(UCX_LIBS)
libunimem_net_la_LDFLAGS = $(AM_LDFLAGS) $(UNM_LDFLAGS) \
	-module -avoid-version -shared -export-symbols-regex '^hal_net_engine$$'
endif
