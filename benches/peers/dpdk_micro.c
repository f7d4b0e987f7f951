/* DPDK's side: the works of burstline_micro.c, one by one, written to its public API. */
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "measure.h"

static struct rte_mempool *pool;
static struct rte_ring *ring;
static uint16_t left, right;

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "dpdk: %s: %s\n", what, rte_strerror(rte_errno));
        exit(1);
    }
}

static uint64_t bulk(uint32_t laps)
{
    struct rte_mbuf *pkts[BURST];
    uint32_t i;
    for (i = 0; i < laps; i++) {
        must(rte_pktmbuf_alloc_bulk(pool, pkts, BURST) == 0, "alloc");
        rte_pktmbuf_free_bulk(pkts, BURST);
    }
    return (uint64_t)laps * BURST;
}

static uint64_t single(uint32_t laps)
{
    uint32_t i;
    for (i = 0; i < laps * BURST; i++) {
        struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
        must(m != NULL, "alloc");
        rte_pktmbuf_free(m);
    }
    return (uint64_t)laps * BURST;
}

#define RING_WORK(fn, n)                                                           \
    static uint64_t fn(uint32_t laps)                                              \
    {                                                                              \
        void *objs[n] = { NULL };                                                  \
        uint32_t i;                                                                \
        for (i = 0; i < laps; i++) {                                               \
            must(rte_ring_enqueue_bulk(ring, objs, n, NULL) == n, "enqueue");      \
            must(rte_ring_dequeue_bulk(ring, objs, n, NULL) == n, "dequeue");      \
        }                                                                          \
        return (uint64_t)laps * n;                                                 \
    }
RING_WORK(ring_8, 8)
RING_WORK(ring_32, 32)

static void rings(const char *name8, const char *name32, unsigned flags)
{
    ring = rte_ring_create("peers", 1024, rte_socket_id(), flags);
    must(ring != NULL, "ring");
    measure(name8, ring_8, 4);
    measure(name32, ring_32, 2);
    rte_ring_free(ring);
}

static inline __attribute__((always_inline)) uint64_t forward(uint32_t laps, int rewrite)
{
    struct rte_mbuf *pkts[BURST];
    uint64_t all = 0;
    uint32_t i;
    int way;
    for (i = 0; i < laps; i++)
        for (way = 0; way < 2; way++) {
            uint16_t n = rte_eth_rx_burst(way ? right : left, 0, pkts, BURST), sent, k;
            if (rewrite)
                for (k = 0; k < n; k++)
                    *rte_pktmbuf_mtod(pkts[k], uint64_t *) ^= k + 1u;
            sent = rte_eth_tx_burst(way ? left : right, 0, pkts, n);
            all += sent;
            if (sent < n)
                rte_pktmbuf_free_bulk(pkts + sent, (unsigned)(n - sent));
        }
    return all;
}

static uint64_t io(uint32_t laps) { return forward(laps, 0); }
static uint64_t rewrite(uint32_t laps) { return forward(laps, 1); }

static uint16_t port(const char *name)
{
    struct rte_eth_conf conf = { 0 };
    uint16_t id = RTE_MAX_ETHPORTS;
    must(rte_eth_dev_get_port_by_name(name, &id) == 0, name);
    must(rte_eth_dev_configure(id, 1, 1, &conf) == 0, "configure");
    must(rte_eth_rx_queue_setup(id, 0, 512, rte_socket_id(), NULL, pool) == 0, "rx queue");
    must(rte_eth_tx_queue_setup(id, 0, 512, rte_socket_id(), NULL) == 0, "tx queue");
    must(rte_eth_dev_start(id) == 0, "start");
    return id;
}

/* One burst into each loop: it goes round from then on. */
static void prime(uint16_t id)
{
    struct rte_mbuf *pkts[BURST];
    int i;
    must(rte_pktmbuf_alloc_bulk(pool, pkts, BURST) == 0, "alloc");
    for (i = 0; i < BURST; i++)
        must(rte_pktmbuf_append(pkts[i], 64) != NULL, "append");
    must(rte_eth_tx_burst(id, 0, pkts, BURST) == BURST, "send");
}

int main(int argc, char **argv)
{
    must(rte_eal_init(argc, argv) >= 0, "init");
    pool = rte_pktmbuf_pool_create("peers", 16383, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, (int)rte_socket_id());
    must(pool != NULL, "pool");
    measure("alloc_free_bulk32", bulk, 2);
    measure("alloc_free_single", single, 1);
    rings("ring_spsc_bulk8", "ring_spsc_bulk32", RING_F_SP_ENQ | RING_F_SC_DEQ);
    rings("ring_mpmc_bulk8", "ring_mpmc_bulk32", 0);
    left = port("net_null0");
    right = port("net_null1");
    measure("null_fwd32", io, 1);
    measure("null_fwd32_rewrite", rewrite, 1);
    left = port("net_ring0");
    right = port("net_ring1");
    prime(left);
    prime(right);
    measure("ring_fwd32", io, 1);
    rte_eal_cleanup();
    return 0;
}
