# SPDX-License-Identifier: BSD-2-Clause
#
# How make check runs a test program: its limit, its environment.

# UNM_TEST_TIME: times the limits of single cases (procs.h), which say where it
# hangs and so have to end first. A hang is a hang, a slow machine is none.
CHECK_TIMEOUT = 900
# Sanitized programs take long to start: fewer of them. check-full's job
# asan has the numbers of a plain build, but for forks.
if SANITIZED
UNM_TEST_TIME = 5
UNM_TEST_FEWER = UNM_TEST_FORKS="$${UNM_TEST_FORKS-600}"; \
	UNM_TEST_KILLS="$${UNM_TEST_KILLS-60}"; \
	UNM_TEST_PACKETS="$${UNM_TEST_PACKETS-40000}"; \
	UNM_TEST_POINTS="$${UNM_TEST_POINTS-1}"; \
	export UNM_TEST_FORKS UNM_TEST_KILLS UNM_TEST_PACKETS UNM_TEST_POINTS;
else
UNM_TEST_TIME = 3
UNM_TEST_FEWER =
endif
TEST_EXTENSIONS = .sh
LOG_COMPILER = $(UNM_FIXED) timeout
AM_SH_LOG_FLAGS = --kill-after=5 $(CHECK_TIMEOUT) \
	$(SHELL) $(abs_top_srcdir)/test/check/alone.sh
AM_LOG_FLAGS = $(AM_SH_LOG_FLAGS) $(UNM_EXEC)
SH_LOG_COMPILER = $(LOG_COMPILER)
# die_after_fork: a forked child of a process with threads starts its own
UNM_TSAN_OPTIONS = second_deadlock_stack=1:die_after_fork=0
AM_TESTS_ENVIRONMENT = $(UNM_TEST_FEWER) \
	UNM_TEST_TIME="$${UNM_TEST_TIME-$(UNM_TEST_TIME)}"; \
	FI_PROVIDER_PATH='$(abs_top_builddir)/.libs'; \
	FI_PROVIDER=unimem; \
	FI_UNIMEM_SLEEP_MS="$${FI_UNIMEM_SLEEP_MS-0}"; \
	UNM_SRCDIR='$(abs_top_srcdir)'; \
	UNM_BUILDDIR='$(abs_top_builddir)'; \
	GSASD='$(abs_top_builddir)/gsasd'; \
	UNIMEM_MAILBOXD='$(abs_top_builddir)/unimem-mailboxd'; \
	NM='$(NM)'; \
	ASAN_OPTIONS="$${ASAN_OPTIONS-detect_stack_use_after_return=1}"; \
	UBSAN_OPTIONS="$${UBSAN_OPTIONS-print_stacktrace=1}"; \
	TSAN_OPTIONS="$${TSAN_OPTIONS-$(UNM_TSAN_OPTIONS)}"; \
	export FI_PROVIDER_PATH FI_PROVIDER UNM_SRCDIR UNM_BUILDDIR NM GSASD; \
	export UNM_TEST_TIME FI_UNIMEM_SLEEP_MS UNIMEM_MAILBOXD; \
	export ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS;
