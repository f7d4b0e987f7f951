/* The inline bursts do what the symbols do, in one program with them; stop waits for them. */
#include <pthread.h>
#include <time.h>

#include "check.h"
#include "burstline/fastpath.h"

static int end;
static uint64_t pkts_moved;

static void *traffic(void *arg)
{
    struct bl_mbuf *pkts[32];
    uint16_t port = *(uint16_t *)arg;
    CHECK(bl_thread_register() >= 0);
    while (!__atomic_load_n(&end, __ATOMIC_ACQUIRE)) {
        uint16_t n = bl_rx_burst(port, 0, pkts, 32);
        uint16_t sent = bl_tx_burst_more(port, 0, pkts, n);
        bl_mbuf_free_bulk(pkts + sent, (uint32_t)(n - sent));
        __atomic_fetch_add(&pkts_moved, n, __ATOMIC_RELAXED);
    }
    return NULL;
}

int main(void)
{
    struct bl_pool *pool = a_pool("inline", 1024);
    struct bl_mbuf *pkts[32];
    struct bl_stats s;
    struct timespec ms = { 0, 1000000 };
    pthread_t thread;
    uint16_t a = a_port("net_null0", pool);
    int i;
    CHECK(bl_check_abi() == 0);
    CHECK(bl_rx_burst(a, 0, pkts, 32) == 0);
    CHECK(bl_port_start(a) == 0);
    CHECK(bl_rx_burst(a, 0, pkts, 32) == 32);
    CHECK(bl_tx_burst(a, 0, pkts, 16) == 16);
    CHECK(bl_tx_burst(a, 0, pkts + 16, 8) == 8);
#undef bl_tx_burst
    CHECK(bl_tx_burst(a, 0, pkts + 24, 8) == 8); /* the symbol */
    CHECK(bl_rx_burst(64, 0, pkts, 32) == 0 && bl_rx_burst(0, 32, pkts, 32) == 0 && bl_rx_burst(a, 0, NULL, 32) == 0);
    CHECK(bl_tx_burst_more(65535, 65535, pkts, 32) == 0);
    CHECK(bl_stats_get(a, &s, sizeof s) == 0 && s.ipackets == 32 && s.opackets == 32);
    CHECK(bl_queue_unbind(a, 0) == 0);
    CHECK(pthread_create(&thread, NULL, traffic, &a) == 0);
    for (i = 0; i < 50; i++) {
        CHECK(bl_port_stop(a) == 0 && bl_port_start(a) == 0);
        nanosleep(&ms, NULL);
    }
    CHECK(bl_port_stop(a) == 0);
    __atomic_store_n(&end, 1, __ATOMIC_RELEASE);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(bl_stats_get(a, &s, sizeof s) == 0 && s.ipackets == 32 + pkts_moved && pkts_moved != 0);
    CHECK(bl_port_close(a) == 0 && bl_pool_available(pool) == 1024);
    CHECK(bl_pool_free(pool) == 0);
    return 0;
}
