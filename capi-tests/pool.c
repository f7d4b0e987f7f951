/* Pools: defaults, ends, sizes of other ages. */
#include "check.h"

static void zero_means_the_default(void)
{
    struct bl_pool_conf conf;
    struct bl_pool_info info;
    struct bl_pool *pool;
    memset(&conf, 0, sizeof conf);
    conf.size = sizeof conf;
    pool = bl_pool_create(&conf);
    CHECK(pool != NULL);
    memset(&info, 0xff, sizeof info);
    CHECK(bl_pool_info_get(pool, &info, sizeof info) == 0);
    CHECK(info.n == 8192 && info.available == 8192 && info.in_use == 0 && info.queues == 0);
    CHECK(info.room == 2048 + BL_HEADROOM && info.headroom == BL_HEADROOM && info.cache == 256);
    CHECK(info.stride >= info.room && info.room_page >= 4096 && info.header_page >= 4096);
    CHECK(strncmp(info.name, "pool", 4) == 0);
    CHECK(bl_pool_size(pool) == 8192 && bl_pool_available(pool) == 8192);
    CHECK(bl_pool_free(pool) == 0);
}

static void a_shorter_config_has_defaults_and_a_longer_one_must_be_known(void)
{
    struct {
        struct bl_pool_conf conf;
        uint64_t later;
    } c;
    struct bl_pool *pool;
    memset(&c, 0, sizeof c);
    c.conf.size = offsetof(struct bl_pool_conf, room);
    c.conf.name = "short";
    c.conf.n = 1000;
    c.conf.room = 77; /* beyond the size: not read */
    pool = bl_pool_create(&c.conf);
    CHECK(pool != NULL && bl_pool_size(pool) == 1000);
    CHECK(bl_pool_free(pool) == 0);
    c.conf.room = 0;
    c.conf.size = sizeof c;
    pool = bl_pool_create(&c.conf);
    CHECK(pool != NULL);
    CHECK(bl_pool_free(pool) == 0);
    c.later = 1;
    CHECK(bl_pool_create(&c.conf) == NULL);
    CHECK(strstr(bl_last_error(), "older") != NULL);
    c.conf.size = 0;
    CHECK(bl_pool_create(&c.conf) == NULL);
    CHECK(strstr(bl_last_error(), "size 0") != NULL);
    CHECK(bl_pool_create(NULL) == NULL);
    CHECK(strstr(bl_last_error(), "NULL") != NULL);
}

static void an_info_of_another_age_is_filled_as_far_as_both_know(void)
{
    struct {
        struct bl_pool_info info;
        uint64_t later;
    } i;
    struct bl_pool *pool = a_pool("ages", 64);
    memset(&i, 0xff, sizeof i);
    CHECK(bl_pool_info_get(pool, &i.info, sizeof i) == 0);
    CHECK(i.info.n == 64 && i.later == 0);
    memset(&i, 0xff, sizeof i);
    CHECK(bl_pool_info_get(pool, &i.info, offsetof(struct bl_pool_info, available)) == 0);
    CHECK(i.info.n == 64 && i.info.available == UINT32_MAX);
    CHECK_FAILS(bl_pool_info_get(pool, &i.info, 0), EINVAL, "size 0");
    CHECK_FAILS(bl_pool_info_get(pool, NULL, sizeof i), EINVAL, "NULL");
    CHECK_FAILS(bl_pool_info_get(NULL, &i.info, sizeof i), EINVAL, "NULL");
    CHECK(bl_pool_free(pool) == 0);
}

static void a_pool_with_packets_out_is_not_freed_and_can_be_closed(void)
{
    struct bl_pool *pool = a_pool("out", 64);
    struct bl_mbuf *m = bl_mbuf_alloc(pool);
    CHECK(m != NULL && bl_pool_available(pool) == 63);
    CHECK_FAILS(bl_pool_free(pool), EBUSY, "1 packets");
    CHECK(bl_pool_available(pool) == 63);
    CHECK(bl_pool_close(pool) == 0);
    memset(bl_mbuf_data(m), 1, 100); /* the memory is still there */
    bl_mbuf_free(m);
}

static void bulk_is_all_or_nothing(void)
{
    struct bl_mbuf *pkts[65];
    struct bl_pool *pool = a_pool("bulk", 64);
    CHECK(bl_mbuf_alloc_bulk(pool, pkts, 65) == -ENOMEM);
    CHECK(bl_pool_available(pool) == 64);
    CHECK(bl_mbuf_alloc_bulk(pool, pkts, 64) == 0);
    CHECK(bl_pool_available(pool) == 0 && bl_mbuf_alloc(pool) == NULL);
    pkts[64] = NULL;
    bl_mbuf_free_bulk(pkts, 65);
    CHECK(bl_pool_available(pool) == 64);
    CHECK(bl_mbuf_alloc_bulk(pool, NULL, 0) == 0);
    CHECK(bl_mbuf_alloc(NULL) == NULL && bl_pool_size(NULL) == 0);
    CHECK(bl_pool_free(pool) == 0);
}

static void what_cannot_be_is_refused_with_the_limit(void)
{
    struct bl_pool_conf conf;
    struct bl_pool *pool = a_pool("taken", 64);
    memset(&conf, 0, sizeof conf);
    conf.size = sizeof conf;
    conf.name = "taken";
    CHECK(bl_pool_create(&conf) == NULL);
    CHECK(strstr(bl_last_error(), "already") != NULL);
    conf.name = "x";
    conf.room = 100;
    CHECK(bl_pool_create(&conf) == NULL);
    CHECK(strstr(bl_last_error(), "65535") != NULL);
    conf.room = 0;
    conf.cache = 513;
    CHECK(bl_pool_create(&conf) == NULL);
    CHECK(strstr(bl_last_error(), "512") != NULL);
    conf.cache = 0;
    conf.flags = 1u << 30;
    CHECK(bl_pool_create(&conf) == NULL);
    CHECK(bl_pool_free(pool) == 0);
    CHECK_FAILS(bl_pool_free(NULL), EINVAL, "NULL");
}

int main(void)
{
    CHECK(strcmp(bl_last_error(), "") == 0);
    zero_means_the_default();
    a_shorter_config_has_defaults_and_a_longer_one_must_be_known();
    an_info_of_another_age_is_filled_as_far_as_both_know();
    a_pool_with_packets_out_is_not_freed_and_can_be_closed();
    bulk_is_all_or_nothing();
    what_cannot_be_is_refused_with_the_limit();
    return 0;
}
