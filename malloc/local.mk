# SPDX-License-Identifier: BSD-2-Clause
#
# libunimem-malloc.so: a preload that makes large heap blocks dmable.

noinst_LTLIBRARIES += libunm_malloc.la
libunm_malloc_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libunm_malloc_la_CPPFLAGS = $(UNM_CPPFLAGS) -I$(MALLOC) -I$(PROV) \
	$(COMMON_CPPFLAGS)
libunm_malloc_la_SOURCES = \
	malloc/malloc_arena.c \
	malloc/malloc_arena.h \
	malloc/malloc_make.c
