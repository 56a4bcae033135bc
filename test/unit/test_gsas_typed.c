/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_typed.c - the operations of gsas_generic.h, the texts of
 * gsas_strerror(), and the log lines that GSAS_LOG switches off
 */
#include "gsas_generic.h"
#include "lib/gsas_services.h"

/* One element of a type: what was written is read; and is only as wide as the
 * type. */
#define TEST_TYPE(T, first, second)	do {				\
		T value = (first), was = 0;				\
		assert_int_equal(gsas_write64(at, UINT64_MAX), 0);	\
		assert_int_equal(gsas_put_value(at, value), 0);		\
		value = 0;						\
		assert_int_equal(gsas_get_value(at, &value), 0);	\
		assert_true(value == (T)(first));			\
		value = (second);					\
		assert_int_equal(gsas_update_value(at, GSAS_OP_SUM, value), \
				 0);					\
		assert_int_equal(gsas_fetch_value(at, GSAS_OP_SUM, 1,	\
						  &was), 0);		\
		assert_true(was == (T)((first) + (second)));		\
		value = (T)(was + 1);					\
		assert_int_equal(gsas_compare_swap(at, value, 5, &was), 0); \
		assert_true(was == value);				\
		assert_int_equal(gsas_compare_swap(at, value, 7, &was), 0); \
		assert_true(was == 5);					\
		if (sizeof(T) < 8)					\
			assert_int_equal(host_read(at) >>		\
					 (8 * sizeof(T) % 64),		\
					 UINT64_MAX >> (8 * sizeof(T) % 64)); \
	} while (0)

static void test_types(void **state)
{
	for (int mapped = 0; mapped < 2; mapped++) {
		gsas_addr at = host_alloc(1, mapped, mapped ? GSAS_MAPPED : 0);

		TEST_TYPE(int8_t, -100, 1);
		TEST_TYPE(uint8_t, 200, 100);
		TEST_TYPE(int16_t, -30000, 1);
		TEST_TYPE(uint16_t, 60000, 1);
		TEST_TYPE(int32_t, -2000000000, 1);
		TEST_TYPE(uint32_t, 4000000000, 1);
		TEST_TYPE(int64_t, INT64_MIN, 1);
		TEST_TYPE(uint64_t, UINT64_MAX - 2, 1);
		TEST_TYPE(long long, INT64_MIN, 1);
		TEST_TYPE(unsigned long long, UINT64_MAX - 2, 1);
		TEST_TYPE(float, 0.5f, 0.25f);
		TEST_TYPE(double, -1e300, 1);
		assert_int_equal(gsas_free(at), 0);
	}
}

/* The arguments are converted to the type of the result's variable. */
static void test_conversion(void **state)
{
	gsas_addr at = host_alloc(1, 0, GSAS_MAPPED);
	uint64_t was;
	double real;

	assert_int_equal(gsas_write64(at, UINT64_C(1) << 40), 0);
	assert_int_equal(gsas_fetch_value(at, GSAS_OP_WRITE, 1, &was), 0);
	assert_int_equal(was, UINT64_C(1) << 40);
	assert_int_equal(host_read(at), 1);
	assert_int_equal(gsas_put_value(at, 0.0), 0);
	assert_int_equal(gsas_fetch_value(at, GSAS_OP_MAX, 2, &real), 0);
	assert_int_equal(gsas_get_value(at, &real), 0);
	assert_true(real == 2.0);
	/* an operation without this type, and numbers of no operation */
	assert_int_equal(gsas_update_value(at, GSAS_OP_BXOR, 1.0), -ENOSYS);
	assert_int_equal(gsas_update_value(at, (enum gsas_op)-1, 1), -ENOSYS);
	assert_int_equal(gsas_atomic(at, GSAS_OP_SUM, (enum gsas_type)99,
				     GSAS_FORM_UPDATE, 1, &was, NULL, NULL),
			 -ENOSYS);
	assert_int_equal(gsas_free(at), 0);
}

static void test_strerror(void **state)
{
	static const int errors[] = {
		EFAULT, ESTALE, EACCES, EINVAL, ENXIO, ENOMEM, EDQUOT, EPERM,
		ENOSYS, EBUSY, ECONNRESET, ETIMEDOUT, ECONNREFUSED, EAGAIN,
		EINPROGRESS, ENOENT, EOPNOTSUPP, EMFILE, ENODEV, EPROTO,
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		const char *text = gsas_strerror(-errors[i]);

		assert_ptr_equal(text, gsas_strerror(errors[i]));
		assert_string_not_equal(text, "unknown error");
		/* a text of this library, not of the system */
		assert_string_not_equal(text, strerror(errors[i]));
	}
	assert_string_equal(gsas_strerror(0), "no error");
	assert_string_equal(gsas_strerror(-E2BIG), strerror(E2BIG));
	assert_string_equal(gsas_strerror(-99999), "unknown error");
	assert_string_equal(gsas_strerror(INT32_MIN), "unknown error");
}

/* ---- Log lines ----------------------------------------------------------- */

/* The main function of a process whose calls fail with a log line. */
static int complain(void)
{
	gsas_addr addr;

	return gsas_alloc(1, 0, GSAS_JOB, NULL, &addr) == 0;
}

/* Run such a process with a variable of libgsas or of the HAL that has no valid
 * value, and store in text what it writes to stderr. log: GSAS_LOG. */
static void run(const char *log, const char *variable, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;
	pid_t pid;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	pid = unit_fork();
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		setenv(variable, "many", 1);
		unsetenv("GSAS_LOG");
		if (log != NULL)
			setenv("GSAS_LOG", log, 1);
		execl("/proc/self/exe", "typed", "complain", (char *)NULL);
		_exit(1);
	}
	close(fds[1]);
	while ((n = read(fds[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(fds[0]);
	assert_int_equal(unit_exit_code(pid), 0);
}

static void test_log(void **state)
{
	char text[4096];

	run(NULL, "GSAS_TIMEOUT", text, sizeof(text));
	assert_non_null(strstr(text, "gsas: GSAS_TIMEOUT"));
	run("1", "GSAS_TIMEOUT", text, sizeof(text));
	assert_non_null(strstr(text, "gsas: GSAS_TIMEOUT"));
	run("0", "GSAS_TIMEOUT", text, sizeof(text));
	assert_string_equal(text, "");
	run("loud", "GSAS_TIMEOUT", text, sizeof(text));
	assert_non_null(strstr(text, "GSAS_LOG=loud"));
	run("1", "FI_UNIMEM_BOARDS", text, sizeof(text));
	assert_non_null(strstr(text, "unimem: FI_UNIMEM_BOARDS"));
	run("0", "FI_UNIMEM_BOARDS", text, sizeof(text));
	assert_string_equal(text, "");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_conversion),
		cmocka_unit_test(test_strerror),
		cmocka_unit_test(test_log),
	};

	if (argc > 1 && strcmp(argv[1], "complain") == 0)
		return complain();
	host_boards();
	return unit_run_with(tests, host_setup, host_teardown);
}
