/* Counters: of a port, of a queue, by name, of another age. */
#include "check.h"

static uint64_t xstat(uint16_t port, const char *name)
{
    struct bl_xstat all[256];
    int i, n = bl_xstats_get(port, all, 256);
    CHECK(n > 0 && n <= 256 && n == bl_xstats_count(port));
    for (i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].value;
    fprintf(stderr, "no xstat %s\n", name);
    exit(1);
}

int main(void)
{
    struct bl_pool *pool = a_pool("stats", 512);
    struct bl_mbuf *pkts[32];
    struct {
        struct bl_stats s;
        uint64_t later;
    } s;
    struct bl_xstat one[2];
    uint16_t a = a_port("net_null0,size=64", pool);
    CHECK(bl_port_start(a) == 0);
    CHECK(bl_rx_burst(a, 0, pkts, 32) == 32);
    CHECK(bl_tx_burst(a, 0, pkts, 32) == 32);
    memset(&s, 0xff, sizeof s);
    CHECK(bl_stats_get(a, &s.s, sizeof s) == 0);
    CHECK(s.s.ipackets == 32 && s.s.opackets == 32 && s.s.ibytes == 2048 && s.s.obytes == 2048 && s.later == 0);
    CHECK(s.s.imissed == 0 && s.s.ierrors == 0 && s.s.oerrors == 0 && s.s.rx_nombuf == 0);
    memset(&s, 0xff, sizeof s);
    CHECK(bl_stats_get(a, &s.s, sizeof(uint64_t)) == 0);
    CHECK(s.s.ipackets == 32 && s.s.opackets == UINT64_MAX);
    CHECK(bl_queue_stats_get(a, 0, &s.s, sizeof s.s) == 0);
    CHECK(s.s.ipackets == 32 && s.s.opackets == 32 && s.s.obytes == 2048);
    CHECK_FAILS(bl_queue_stats_get(a, 9, &s.s, sizeof s.s), EINVAL, "queue 9");
    CHECK(xstat(a, "ipackets") == 32 && xstat(a, "rx_q0_ipackets") == 32 && xstat(a, "tx_q0_obytes") == 2048);
    CHECK(bl_xstats_get(a, one, 2) == bl_xstats_count(a));
    CHECK(bl_xstats_get(a, NULL, 0) == bl_xstats_count(a));
    CHECK_FAILS(bl_xstats_get(a, NULL, 1), EINVAL, "NULL");
    CHECK(bl_stats_reset(a) == 0);
    CHECK(bl_stats_get(a, &s.s, sizeof s.s) == 0);
    CHECK(s.s.ipackets == 0 && s.s.opackets == 0);
    CHECK(bl_rx_burst(a, 0, pkts, 8) == 8);
    bl_mbuf_free_bulk(pkts, 8);
    CHECK(bl_stats_get(a, &s.s, sizeof s.s) == 0);
    CHECK(s.s.ipackets == 8);
    CHECK_FAILS(bl_stats_get(63, &s.s, sizeof s.s), ENODEV, "63");
    CHECK_FAILS(bl_stats_get(64, &s.s, sizeof s.s), ENODEV, "63");
    CHECK_FAILS(bl_stats_reset(64), ENODEV, "64");
    CHECK(bl_port_close(a) == 0);
    CHECK(bl_pool_free(pool) == 0);
    return 0;
}
