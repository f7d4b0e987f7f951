/* bl_init as DPDK's programs use it; lcores; the end. */
#include "check.h"

static int work(void *arg)
{
    int *n = (int *)arg;
    CHECK(bl_thread_id() >= 0); /* registered */
    *n += 1;
    return 40 + *n;
}

static void arguments_are_used_up_to_the_programs_own(void)
{
    char a[][32] = { "prog", "--no-huge", "--vdev", "net_null0,size=100", "--vdev", "net_null1", "--", "-p", "3" };
    char *argv[10];
    int i, n;
    for (i = 0; i < 9; i++)
        argv[i] = a[i];
    argv[9] = NULL;
    n = bl_init(9, argv);
    CHECK(n == 6);
    CHECK(argv[n] == a[0] && strcmp(argv[n + 1], "-p") == 0);
    CHECK(bl_port_count() == 2 && bl_port_by_name("net_null1") == 1);
    CHECK_FAILS(bl_init(0, NULL), EALREADY, "bl_cleanup");
    CHECK(bl_lcore_count() == 1 && bl_lcore_main() == bl_lcore_get(0));
    CHECK_FAILS(bl_lcore_get(1), EINVAL, "1 of 1");
    CHECK_FAILS(bl_lcore_launch((uint32_t)bl_lcore_main(), work, NULL), EINVAL, "main");
    CHECK(bl_vdev_probe("net_null2") == 2);
    CHECK(bl_cleanup() == 0);
    CHECK(bl_port_count() == 0);
    CHECK(bl_cleanup() == 0);
    CHECK_FAILS(bl_lcore_count(), EAGAIN, "bl_init");
}

static void a_failed_init_leaves_nothing(void)
{
    char a[][32] = { "prog", "--vdev", "net_null0", "--vdev", "net_nothing0" };
    char help[] = "-h";
    char *argv[6];
    int i;
    for (i = 0; i < 5; i++)
        argv[i] = a[i];
    argv[5] = NULL;
    CHECK_FAILS(bl_init(5, argv), ENODEV, "net_nothing");
    CHECK(bl_port_count() == 0);
    argv[1] = help;
    CHECK_FAILS(bl_init(2, argv), ECANCELED, "--vdev");
    CHECK(bl_init(0, NULL) == 0);
    CHECK(bl_cleanup() == 0);
}

static void lcores_run_what_they_are_given(void)
{
    char prog[] = "prog", map[] = "--lcores", both[] = "3@0,7@0";
    char *argv[4];
    int n = 1, result = 0;
    argv[0] = prog;
    argv[1] = map;
    argv[2] = both;
    argv[3] = NULL;
    if (bl_init(3, argv) < 0) {
        /* CPU 0 may not be ours. */
        CHECK(strstr(bl_last_error(), "0") != NULL);
        return;
    }
    CHECK(bl_lcore_count() == 2 && bl_lcore_main() == 3 && bl_lcore_get(1) == 7);
    CHECK_FAILS(bl_lcore_launch(8, work, &n), EINVAL, "8");
    CHECK_FAILS(bl_lcore_launch(7, NULL, &n), EINVAL, "NULL");
    CHECK_FAILS(bl_lcore_wait(7, 0, NULL), EINVAL, "not launched");
    CHECK(bl_lcore_launch(7, work, &n) == 0);
    CHECK_FAILS(bl_lcore_launch(7, work, &n), EBUSY, "7");
    CHECK_FAILS(bl_cleanup(), EBUSY, "7");
    CHECK(bl_lcore_wait(7, 10000, &result) == 0);
    CHECK(n == 2 && result == 42);
    CHECK(bl_cleanup() == 0);
}

int main(void)
{
    arguments_are_used_up_to_the_programs_own();
    a_failed_init_leaves_nothing();
    lcores_run_what_they_are_given();
    return 0;
}
