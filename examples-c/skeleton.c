/* The smallest forwarder: what comes in on port 0 goes out on port 1, and back, until ctrl-C.
 *
 *     ./skeleton --vdev net_null0 --vdev net_null1
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include <burstline.h>
#include <burstline/fastpath.h>

static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
    (void)signal;
    stopped = 1;
}

static int failed(const char *what)
{
    fprintf(stderr, "skeleton: %s: %s\n", what, bl_last_error());
    return 1;
}

static int start(uint16_t port, struct bl_pool *pool)
{
    struct bl_port_conf conf = { .size = sizeof conf, .n_rx = 1, .n_tx = 1 };
    int e = bl_port_configure(port, &conf);
    if (e == 0)
        e = bl_rx_queue_setup(port, 0, 0, pool);
    if (e == 0)
        e = bl_tx_queue_setup(port, 0, 0);
    return e == 0 ? bl_port_start(port) : e;
}

int main(int argc, char **argv)
{
    struct bl_pool_conf conf = { .size = sizeof conf, .name = "packets" };
    struct bl_pool *pool;
    int used;

    if (bl_check_abi() < 0)
        return failed("library");
    used = bl_init(argc, argv);
    if (used == -ECANCELED) {
        puts(bl_last_error());
        return 0;
    }
    if (used < 0)
        return failed("init");
    if (bl_port_count() != 2) {
        fprintf(stderr, "skeleton: two ports are needed: --vdev net_null0 --vdev net_null1\n");
        return 1;
    }
    pool = bl_pool_create(&conf);
    if (!pool)
        return failed("pool");
    if (start(0, pool) < 0 || start(1, pool) < 0)
        return failed("port");
    if (bl_thread_id() < 0 && bl_thread_register() < 0)
        return failed("thread");
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);

    while (!stopped) {
        for (uint16_t port = 0; port < 2; port++) {
            struct bl_mbuf *pkts[32];
            uint16_t n = bl_rx_burst(port, 0, pkts, 32);
            uint16_t sent = bl_tx_burst(port ^ 1, 0, pkts, n);
            bl_mbuf_free_bulk(pkts + sent, (uint32_t)(n - sent)); /* the ring was full */
        }
    }

    for (uint16_t port = 0; port < 2; port++) {
        struct bl_stats s;
        if (bl_port_stop(port) < 0 || bl_stats_get(port, &s, sizeof s) < 0)
            return failed("stop");
        printf("port %u: %llu packets in, %llu out\n", (unsigned)port, (unsigned long long)s.ipackets,
               (unsigned long long)s.opackets);
    }
    if (bl_cleanup() < 0)
        return failed("cleanup");
    return bl_pool_free(pool) < 0 ? failed("pool") : 0;
}
