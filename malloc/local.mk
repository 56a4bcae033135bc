# SPDX-License-Identifier: BSD-2-Clause
#
# libunimem-malloc.so: a preload that makes large heap blocks dmable.

lib_LTLIBRARIES += libunimem-malloc.la
# the compiler knows what malloc() does, and would use it to define calloc()
libunimem_malloc_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden -fno-builtin
libunimem_malloc_la_CPPFLAGS = $(UNM_CPPFLAGS) -I$(MALLOC) -I$(PROV) \
	$(COMMON_CPPFLAGS)
# initial-exec and now: malloc() must not need malloc()
libunimem_malloc_la_LDFLAGS = $(AM_LDFLAGS) $(UNM_LDFLAGS) \
	-avoid-version -shared -Wl,-z,now -Wl,-z,nodelete \
	-export-symbols-regex '^($(MALLOC_SYMBOLS))$$'
MALLOC_SYMBOLS = malloc|calloc|realloc|free|malloc_usable_size|$(MALLOC_MORE)
MALLOC_MORE = memalign|aligned_alloc|posix_memalign|$(MALLOC_LAST)
MALLOC_LAST = valloc|pvalloc|unimem_malloc_arena
libunimem_malloc_la_LIBADD = -ldl
libunimem_malloc_la_SOURCES = \
	malloc/malloc_arena.c \
	malloc/malloc_arena.h \
	malloc/malloc_fork.c \
	malloc/malloc_fork.h \
	malloc/malloc_make.c \
	malloc/unm_malloc.c \
	prov/unimem/hal/hal_limit.c \
	prov/unimem/hal/hal_limit.h \
	prov/unimem/hal/hal_lock.c \
	prov/unimem/hal/hal_lock.h \
	prov/unimem/hal/hal_log.c \
	prov/unimem/hal/hal_log.h \
	prov/unimem/hal/hal_pid.c \
	prov/unimem/hal/hal_pid.h \
	prov/unimem/util/unm_arena.h \
	prov/unimem/util/unm_span.c \
	prov/unimem/util/unm_span.h
