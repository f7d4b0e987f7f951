/* What the tests share: a check that tells where, what and why. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "burstline.h"

#define CHECK(cond)                                                                                          \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #cond, bl_last_error());      \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

/* A call that gives `errno_` and says why, with `word` in it. */
#define CHECK_FAILS(call, errno_, word)                       \
    do {                                                      \
        CHECK((call) == -(errno_));                           \
        CHECK(strstr(bl_last_error(), (word)) != NULL);       \
    } while (0)

/* A pool of `n` packets on ordinary pages. */
static inline struct bl_pool *a_pool(const char *name, uint32_t n)
{
    struct bl_pool_conf conf;
    struct bl_pool *pool;
    memset(&conf, 0, sizeof conf);
    conf.size = sizeof conf;
    conf.name = name;
    conf.n = n;
    conf.flags = BL_POOL_NO_HUGE;
    pool = bl_pool_create(&conf);
    CHECK(pool != NULL);
    return pool;
}

/* A port of `args` with one receive and one send queue, not started. */
static inline uint16_t a_port(const char *args, struct bl_pool *pool)
{
    struct bl_port_conf conf;
    int port = bl_vdev_probe(args);
    CHECK(port >= 0);
    memset(&conf, 0, sizeof conf);
    conf.size = sizeof conf;
    conf.n_rx = 1;
    conf.n_tx = 1;
    CHECK(bl_port_configure((uint16_t)port, &conf) == 0);
    CHECK(bl_rx_queue_setup((uint16_t)port, 0, 0, pool) == 0);
    CHECK(bl_tx_queue_setup((uint16_t)port, 0, 0) == 0);
    return (uint16_t)port;
}

#endif
