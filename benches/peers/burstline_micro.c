/* Our side: the works of dpdk_micro.c, one by one. Bursts twice: through the library's symbols, and inline (fastpath.h). */
#include <string.h>

#include "burstline.h"
#include "measure.h"

static struct bl_pool *pool;
static struct bl_ring *ring;
static uint16_t left, right;

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "burstline: %s: %s\n", what, bl_last_error());
        exit(1);
    }
}

static uint64_t bulk(uint32_t laps)
{
    struct bl_mbuf *pkts[BURST];
    uint32_t i;
    for (i = 0; i < laps; i++) {
        must(bl_mbuf_alloc_bulk(pool, pkts, BURST) == 0, "alloc");
        bl_mbuf_free_bulk(pkts, BURST);
    }
    return (uint64_t)laps * BURST;
}

static uint64_t single(uint32_t laps)
{
    uint32_t i;
    for (i = 0; i < laps * BURST; i++) {
        struct bl_mbuf *m = bl_mbuf_alloc(pool);
        must(m != NULL, "alloc");
        bl_mbuf_free(m);
    }
    return (uint64_t)laps * BURST;
}

#define RING_WORK(fn, n)                                                           \
    static uint64_t fn(uint32_t laps)                                              \
    {                                                                              \
        void *objs[n] = { NULL };                                                  \
        uint32_t i;                                                                \
        for (i = 0; i < laps; i++) {                                               \
            must(bl_ring_enqueue_bulk(ring, objs, n, NULL) == n, "enqueue");       \
            must(bl_ring_dequeue_bulk(ring, objs, n, NULL) == n, "dequeue");       \
        }                                                                          \
        return (uint64_t)laps * n;                                                 \
    }
RING_WORK(ring_8, 8)
RING_WORK(ring_32, 32)

static void rings(const char *name8, const char *name32, unsigned flags)
{
    ring = bl_ring_create("peers", 1024, flags);
    must(ring != NULL, "ring");
    measure(name8, ring_8, 4);
    measure(name32, ring_32, 2);
    bl_ring_free(ring);
}

#define FORWARD(fn, rewrite)                                                                          \
    static uint64_t fn(uint32_t laps)                                                                 \
    {                                                                                                 \
        struct bl_mbuf *pkts[BURST];                                                                  \
        uint64_t all = 0;                                                                             \
        uint32_t i;                                                                                   \
        int way;                                                                                      \
        for (i = 0; i < laps; i++)                                                                    \
            for (way = 0; way < 2; way++) {                                                           \
                uint16_t n = bl_rx_burst(way ? right : left, 0, pkts, BURST), sent, k;                \
                if (rewrite)                                                                          \
                    for (k = 0; k < n; k++)                                                           \
                        *(uint64_t *)bl_mbuf_data(pkts[k]) ^= k + 1u;                                 \
                sent = bl_tx_burst(way ? left : right, 0, pkts, n);                                   \
                all += sent;                                                                          \
                if (sent < n)                                                                         \
                    bl_mbuf_free_bulk(pkts + sent, (uint32_t)(n - sent));                             \
            }                                                                                         \
        return all;                                                                                   \
    }

FORWARD(io, 0)
FORWARD(rewrite, 1)

static void prime(uint16_t id);

#include "burstline/fastpath.h"

FORWARD(io_inline, 0)
FORWARD(rewrite_inline, 1)

static uint16_t port(const char *name)
{
    struct bl_port_conf conf;
    int id = bl_vdev_probe(name);
    must(id >= 0, name);
    memset(&conf, 0, sizeof conf);
    conf.size = sizeof conf;
    conf.n_rx = 1;
    conf.n_tx = 1;
    must(bl_port_configure((uint16_t)id, &conf) == 0, "configure");
    must(bl_rx_queue_setup((uint16_t)id, 0, 512, pool) == 0, "rx queue");
    must(bl_tx_queue_setup((uint16_t)id, 0, 512) == 0, "tx queue");
    must(bl_port_start((uint16_t)id) == 0, "start");
    return (uint16_t)id;
}

/* One burst into each loop: it goes round from then on. */
static void prime(uint16_t id)
{
    struct bl_mbuf *pkts[BURST];
    int i;
    must(bl_mbuf_alloc_bulk(pool, pkts, BURST) == 0, "alloc");
    for (i = 0; i < BURST; i++)
        must(bl_mbuf_append(pkts[i], 64) != NULL, "append");
    must(bl_tx_burst(id, 0, pkts, BURST) == BURST, "send");
}

int main(void)
{
    struct bl_pool_conf conf;
    must(bl_check_abi() == 0, "layout");
    must(bl_thread_register() >= 0, "slot");
    memset(&conf, 0, sizeof conf);
    conf.size = sizeof conf;
    conf.name = "peers";
    conf.n = 16383;
    conf.cache = 256;
    conf.flags = getenv("NO_HUGE") ? BL_POOL_NO_HUGE : 0;
    pool = bl_pool_create(&conf);
    must(pool != NULL, "pool");
    measure("alloc_free_bulk32", bulk, 2);
    measure("alloc_free_single", single, 1);
    rings("ring_spsc_bulk8", "ring_spsc_bulk32", BL_RING_SINGLE_PRODUCER | BL_RING_SINGLE_CONSUMER);
    rings("ring_mpmc_bulk8", "ring_mpmc_bulk32", 0);
    left = port("net_null0");
    right = port("net_null1");
    measure("null_fwd32", io, 1);
    measure("null_fwd32:inline", io_inline, 1);
    measure("null_fwd32_rewrite", rewrite, 1);
    measure("null_fwd32_rewrite:inline", rewrite_inline, 1);
    left = port("net_ring0");
    right = port("net_ring1");
    prime(left);
    prime(right);
    measure("ring_fwd32", io, 1);
    measure("ring_fwd32:inline", io_inline, 1);
    return 0;
}
