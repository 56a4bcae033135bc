/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_launcher.c - the environment variables by which launchers describe a
 * process, and the board that is chosen by them.
 */
#include "hal/hal.h"
#include "hal/hal_launcher.h"
#include "lib/unit.h"

static const char *const vars[] = {
	"MPI_LOCALRANKID", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_RANK",
	"OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_LOCALID", "SLURM_NODEID",
	"SLURM_STEP_TASKS_PER_NODE",
};
#define VARS	7

/* Sets the variables; "-" unsets one. */
static void launch(const char *const value[VARS])
{
	for (int i = 0; i < VARS; i++)
		if (strcmp(value[i], "-") == 0)
			unsetenv(vars[i]);
		else
			setenv(vars[i], value[i], 1);
}

static const struct {
	const char *value[VARS];
	long rank, nranks;
} t[] = {
	{ { "-", "-", "-", "-", "-", "-", "-" }, -1, -1 },
	{ { "3", "4", "-", "-", "-", "-", "-" }, 3, 4 },
	{ { "3", "-", "-", "-", "-", "-", "-" }, 3, -1 },
	{ { "4", "4", "-", "-", "-", "-", "-" }, 4, -1 },
	{ { "-", "-", "1", "2", "-", "-", "-" }, 1, 2 },
	{ { "x", "9", "1", "2", "-", "-", "-" }, 1, 2 },
	{ { "99999999999", "9", "-", "-", "-", "-", "-" }, -1, -1 },
	/* srun */
	{ { "-", "-", "-", "-", "3", "0", "4" }, 3, 4 },
	{ { "-", "-", "-", "-", "3", "1", "4(x2),5" }, 3, 4 },
	{ { "-", "-", "-", "-", "4", "2", "4(x2),5" }, 4, 5 },
	{ { "-", "-", "-", "-", "0", "12", "2(x3),1,16(x1000)" }, 0, 16 },
	{ { "-", "-", "-", "-", "0", "3", "2(x3),1,16(x1000)" }, 0, 1 },
	/* missing or invalid values */
	{ { "-", "-", "-", "-", "3", "0", "-" }, 3, -1 },
	{ { "-", "-", "-", "-", "3", "-", "4" }, 3, -1 },
	{ { "-", "-", "-", "-", "3", "1", "4" }, 3, -1 },
	{ { "-", "-", "-", "-", "3", "2", "4(x2)" }, 3, -1 },
	{ { "-", "-", "-", "-", "3", "1", "4(x0),5" }, 3, -1 },
	{ { "-", "-", "-", "-", "3", "1", "4(x2" }, 3, -1 },
	{ { "-", "-", "-", "-", "3", "0", "4(x" }, 3, -1 },
	{ { "-", "-", "-", "-", "3", "0", "-4" }, 3, -1 },
	{ { "-", "-", "-", "-", "3", "0", "" }, 3, -1 },
	{ { "-", "-", "-", "-", "3", "0", "99999999999999999999" }, 3, -1 },
	{ { "-", "-", "-", "-", "4", "0", "4" }, 4, -1 },
	/* mpirun inside srun's only task of a node: the inner one counts */
	{ { "3", "4", "-", "-", "0", "0", "1" }, 3, 4 },
	{ { "0", "-", "-", "-", "0", "0", "1" }, 0, -1 },
};

static void test_what_launchers_say(void **state)
{
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		long rank, nranks;

		launch(t[i].value);
		hal_launcher_ranks(&rank, &nranks);
		if (rank != t[i].rank || nranks != t[i].nranks)
			unit_fail("row %zu: %ld of %ld", i, rank, nranks);
	}
}

/* Ranks in blocks: rank 5 of 8 is on board 2 of 4. */
static void test_board_of_a_slurm_task(void **state)
{
	static const char *const value[VARS] = {
		"-", "-", "-", "-", "5", "1", "2,8(x3)",
	};
	struct hal *hal;

	launch(value);
	setenv("FI_UNIMEM_BOARDS", "4", 1);
	assert_int_equal(hal_get(NULL, &hal), 0);
	assert_int_equal(hal->caps.boards, 4);
	assert_int_equal(hal->own_board, 2);
	hal_put(hal);
}

UNIT_MAIN(
	cmocka_unit_test(test_what_launchers_say),
	cmocka_unit_test(test_board_of_a_slurm_task),
)
