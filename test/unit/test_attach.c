/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_attach.c - the random word of a HAL by which hal_emu_attach.c verifies
 * that an address space is the peer's: where the word lies and which processes
 * have it.
 *
 * hal_conform_exec.c tests how transfers use the word.
 */
#include "hal/emu/hal_emu_types.h"
#include "hal/hal.h"
#include "lib/unit.h"

#define OPENS	8
/* above programs without PIE, below all that the kernel places by itself where
 * addresses have 47 bits or more (an emulated processor places lower) */
#define LOWEST	(UINT64_C(1) << 35)
#define HIGHEST	(UINT64_C(0x380000000000) - 1)

static struct hal *open_emu(void)
{
	struct hal_params params;
	struct hal *hal;

	assert_int_equal(hal_params_load(&params), 0);
	snprintf(params.hal, sizeof(params.hal), "emu");
	params.fault[0] = '\0';
	assert_int_equal(hal_get(&params, &hal), 0);
	return hal;
}

static const struct hal_emu *emu_of(const struct hal *hal)
{
	return (const struct hal_emu *)hal;
}

static bool mapped(const void *page)
{
	return msync((void *)(uintptr_t)page, 1, MS_ASYNC) == 0;
}

/* Another program has memory at that address only if it asks for this very
 * address: the kernel puts programs, heaps, libraries and stacks into the upper
 * third. */
static void test_word_is_where_no_program_is(void **state)
{
	uintptr_t at[OPENS];

	for (int i = 0; i < OPENS; i++) {
		struct hal *hal = open_emu();
		const struct hal_emu *emu = emu_of(hal);

		at[i] = (uintptr_t)emu->word;
		assert_int_equal(*emu->word, emu->word_value);
		assert_in_range(at[i], LOWEST, HIGHEST);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(at[k], at[i]);
		hal_put(hal);
		assert_false(mapped((void *)at[i]));
	}
}

/* A child may later get the process number that its parent had, so a child must
 * not have the word. */
static void test_children_have_no_word(void **state)
{
	struct hal *hal = open_emu();
	const struct hal_emu *emu = emu_of(hal);
	pid_t pid;

	assert_true(mapped(emu->word));
	pid = unit_fork();
	if (pid == 0)
		_exit(mapped(emu->word) ? 1 : 0);
	assert_int_equal(unit_exit_code(pid), 0);
	assert_int_equal(*emu->word, emu->word_value);
	hal_put(hal);
}

UNIT_MAIN(
	cmocka_unit_test(test_word_is_where_no_program_is),
	cmocka_unit_test(test_children_have_no_word),
)
