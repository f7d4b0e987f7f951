/* Errors: texts of a thread's own, and a panic that stops at the boundary. */
#include <pthread.h>

#include "check.h"

static char said[4096];

static void hear(uint32_t level, const char *text, void *user)
{
    (void)level;
    (void)user;
    strncat(said, text, sizeof said - strlen(said) - 1);
}

static void *another(void *arg)
{
    (void)arg;
    CHECK(strcmp(bl_last_error(), "") == 0);
    CHECK_FAILS(bl_port_start(7), ENODEV, "no port 7");
    return NULL;
}

int main(void)
{
    pthread_t thread;
    struct bl_pool_conf conf;
    struct bl_port_conf port_conf;
    struct bl_pool *pool = a_pool("errors", 64);
    CHECK(strcmp(bl_last_error(), "") == 0);
    CHECK_FAILS(bl_vdev_probe("net_nul0"), ENODEV, "did you mean 'net_null'?");
    CHECK_FAILS(bl_vdev_probe("net_null0,size=9999999"), EINVAL, "65535");
    CHECK_FAILS(bl_vdev_probe("net_null0,colour=red"), EINVAL, "colour");
    CHECK_FAILS(bl_vdev_probe(""), EINVAL, "");
    CHECK_FAILS(bl_vdev_probe("\xff\xfe"), EINVAL, "UTF-8");
    CHECK_FAILS(bl_vdev_probe(NULL), EINVAL, "NULL");
    CHECK(pthread_create(&thread, NULL, another, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(strstr(bl_last_error(), "NULL") != NULL); /* ours is as it was */
    CHECK_FAILS(bl_layout_check(BL_LAYOUT_VERSION + 1), EPROTO, "compile it again");
    CHECK(bl_layout_version() == BL_LAYOUT_VERSION && bl_check_abi() == 0);
    CHECK(strcmp(bl_version(), BL_VERSION) == 0);
    CHECK_FAILS(bl_debug_set(64), EINVAL, "0x40");

    /* The state machine, in the wrong order. */
    CHECK(bl_vdev_probe("net_null0") == 0);
    CHECK_FAILS(bl_vdev_probe("net_null0"), EEXIST, "net_null0");
    CHECK_FAILS(bl_port_start(0), EBUSY, "configure it first");
    CHECK_FAILS(bl_rx_queue_setup(0, 0, 0, pool), EBUSY, "configure");
    memset(&port_conf, 0, sizeof port_conf);
    port_conf.size = sizeof port_conf;
    CHECK_FAILS(bl_port_configure(0, &port_conf), EINVAL, "at least one queue");
    port_conf.n_rx = 33;
    CHECK_FAILS(bl_port_configure(0, &port_conf), EINVAL, "32");
    port_conf.n_rx = 1;
    CHECK(bl_port_configure(0, &port_conf) == 0);
    CHECK_FAILS(bl_port_start(0), EINVAL, "not set up");
    CHECK_FAILS(bl_rx_queue_setup(0, 1, 0, pool), EINVAL, "queue 1");
    CHECK_FAILS(bl_rx_queue_setup(0, 0, 1000000, pool), EINVAL, "32768");
    CHECK_FAILS(bl_rx_queue_setup(0, 0, 0, NULL), EINVAL, "NULL");
    CHECK_FAILS(bl_port_configure(0, NULL), EINVAL, "NULL");
    CHECK(bl_port_close(0) == 0);

    /* A panic inside ends in an errno and a text, in every shape of call; and the library goes on. */
    CHECK(bl_log_set(hear, NULL, BL_LOG_ERROR) == 0);
    CHECK(bl_debug_set(BL_DEBUG_FAULT) == 0);
    CHECK_FAILS(bl_port_start(0), EFAULT, "internal error");
    CHECK(strstr(said, "bl_debug_set") != NULL); /* told through the log, not on stderr */
    CHECK_FAILS(bl_port_start(0), ENODEV, "no port 0");
    CHECK(bl_debug_set(BL_DEBUG_FAULT) == 0);
    CHECK_FAILS(bl_port_by_name("x"), EFAULT, "internal error");
    CHECK(bl_debug_set(BL_DEBUG_FAULT) == 0);
    memset(&conf, 0, sizeof conf);
    conf.size = sizeof conf;
    CHECK(bl_pool_create(&conf) == NULL);
    CHECK(strstr(bl_last_error(), "internal error") != NULL);
    CHECK(bl_debug_set(0) == 0);
    CHECK(bl_pool_free(pool) == 0);
    return 0;
}
