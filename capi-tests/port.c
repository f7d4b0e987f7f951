/* Ports: null ports forward, from registered and unregistered threads; stop and close from another thread. */
#include <pthread.h>
#include <time.h>

#include "check.h"

static void sleep_ms(long ms)
{
    struct timespec t;
    t.tv_sec = 0;
    t.tv_nsec = ms * 1000000;
    nanosleep(&t, NULL);
}

static void forward(uint16_t from, uint16_t to, int turns)
{
    struct bl_mbuf *pkts[32];
    int i;
    for (i = 0; i < turns; i++) {
        uint16_t n = bl_rx_burst(from, 0, pkts, 32);
        uint16_t sent = bl_tx_burst(to, 0, pkts, n);
        bl_mbuf_free_bulk(pkts + sent, (uint32_t)(n - sent));
    }
}

static void null_ports_forward(void)
{
    struct bl_pool *pool = a_pool("forward", 1024);
    struct bl_mbuf *pkts[32];
    struct bl_stats s;
    uint16_t a = a_port("net_null0,size=100", pool), b = a_port("net_null1", pool);
    CHECK(bl_thread_id() == -ENOENT);
    CHECK(bl_thread_register() >= 0);
    CHECK_FAILS(bl_thread_register(), EEXIST, "registered");
    CHECK(bl_rx_burst(a, 0, pkts, 32) == 0);
    CHECK(bl_port_start(a) == 0 && bl_port_start(b) == 0);
    forward(a, b, 1000);
    CHECK(bl_stats_get(a, &s, sizeof s) == 0);
    CHECK(s.ipackets == 32000 && s.ibytes == 3200000 && s.opackets == 0);
    CHECK(bl_stats_get(b, &s, sizeof s) == 0);
    CHECK(s.opackets == 32000 && s.obytes == 3200000);
    CHECK(bl_rx_burst(a, 0, NULL, 32) == 0 && bl_tx_burst(a, 0, NULL, 0) == 0);
    CHECK(bl_rx_burst(63, 0, pkts, 32) == 0 && bl_rx_burst(65535, 0, pkts, 32) == 0);
    CHECK(bl_rx_burst(a, 1, pkts, 32) == 0 && bl_rx_burst(a, 65535, pkts, 32) == 0);
    CHECK(bl_tx_flush(a, 0) == 0 && bl_tx_flush(65535, 0) == 0);
    CHECK(bl_queue_unbind(a, 0) == 0 && bl_queue_unbind(b, 0) == 0);
    CHECK(bl_port_stop(a) == 0);
    CHECK(bl_rx_burst(a, 0, pkts, 32) == 0);
    CHECK(bl_port_start(a) == 0);
    CHECK(bl_rx_burst(a, 0, pkts, 32) == 32);
    bl_mbuf_free_bulk(pkts, 32);
    CHECK(bl_thread_unregister() == 0 && bl_thread_unregister() == -ENOENT);
    /* Unregistered: through the shared ring. */
    forward(a, b, 100);
    CHECK_FAILS(bl_pool_free(pool), EBUSY, "queues");
    CHECK(bl_port_close(a) == 0 && bl_port_close(b) == 0);
    CHECK(bl_pool_available(pool) == 1024);
    CHECK(bl_pool_free(pool) == 0);
}

static void a_stopped_port_takes_nothing(void)
{
    struct bl_pool *pool = a_pool("stopped", 256);
    struct bl_mbuf *m = bl_mbuf_alloc(pool);
    uint16_t a = a_port("net_null0", pool);
    CHECK(bl_mbuf_append(m, 60) != NULL);
    CHECK(bl_tx_burst(a, 0, &m, 1) == 0);
    CHECK(bl_port_start(a) == 0);
    CHECK(bl_tx_burst_more(a, 0, &m, 1) == 1);
    CHECK(bl_port_close(a) == 0);
    CHECK(bl_pool_free(pool) == 0);
}

struct traffic {
    uint16_t a, b;
    int end;
    uint64_t pkts;
};

static void *traffic(void *arg)
{
    struct traffic *t = (struct traffic *)arg;
    struct bl_mbuf *pkts[32];
    CHECK(bl_thread_register() >= 0);
    while (!__atomic_load_n(&t->end, __ATOMIC_ACQUIRE)) {
        uint16_t n = bl_rx_burst(t->a, 0, pkts, 32);
        uint16_t sent = bl_tx_burst(t->b, 0, pkts, n);
        bl_mbuf_free_bulk(pkts + sent, (uint32_t)(n - sent));
        __atomic_fetch_add(&t->pkts, n, __ATOMIC_RELAXED);
    }
    return NULL; /* its slot ends with it */
}

static void stop_and_start_from_another_thread_during_traffic(void)
{
    struct bl_pool *pool = a_pool("traffic", 1024);
    struct traffic t;
    struct bl_stats in, out;
    pthread_t thread;
    uint64_t before;
    int i, spins;
    memset(&t, 0, sizeof t);
    t.a = a_port("net_null0", pool);
    t.b = a_port("net_null1", pool);
    CHECK(bl_port_start(t.a) == 0 && bl_port_start(t.b) == 0);
    CHECK(pthread_create(&thread, NULL, traffic, &t) == 0);
    for (i = 0; i < 50; i++) {
        uint16_t port = i & 1 ? t.a : t.b;
        before = __atomic_load_n(&t.pkts, __ATOMIC_RELAXED);
        CHECK(bl_port_stop(port) == 0);
        CHECK(bl_port_start(port) == 0);
        for (spins = 0; spins < 5000 && __atomic_load_n(&t.pkts, __ATOMIC_RELAXED) == before; spins++)
            sleep_ms(1);
        CHECK(__atomic_load_n(&t.pkts, __ATOMIC_RELAXED) != before);
    }
    CHECK(bl_port_close(t.b) == 0);
    sleep_ms(2);
    CHECK(bl_port_stop(t.a) == 0);
    __atomic_store_n(&t.end, 1, __ATOMIC_RELEASE);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(bl_stats_get(t.a, &in, sizeof in) == 0);
    CHECK(in.ipackets == t.pkts);
    CHECK_FAILS(bl_stats_get(t.b, &out, sizeof out), ENODEV, "no port");
    CHECK(bl_port_close(t.a) == 0);
    CHECK(bl_pool_available(pool) == 1024);
    CHECK(bl_pool_free(pool) == 0);
}

static void a_port_is_found_and_says_what_it_is(void)
{
    struct bl_pool *pool = a_pool("info", 256);
    struct bl_port_info info;
    struct bl_link link;
    uint32_t mtu = 0;
    uint8_t mac[6], wanted[6] = { 2, 1, 2, 3, 4, 5 }, group[6] = { 3, 0, 0, 0, 0, 1 };
    uint16_t a = a_port("net_null3", pool);
    CHECK(bl_port_count() == 1 && bl_port_next(0) == a && bl_port_next(a + 1u) == -ENODEV);
    CHECK(bl_port_by_name("net_null3") == a);
    CHECK_FAILS(bl_port_by_name("net_null4"), ENODEV, "net_null4");
    CHECK_FAILS(bl_port_by_name(NULL), EINVAL, "NULL");
    memset(&info, 0xff, sizeof info);
    CHECK(bl_port_info_get(a, &info, sizeof info) == 0);
    CHECK(info.port == a && strcmp(info.name, "net_null3") == 0 && strcmp(info.driver, "net_null") == 0);
    CHECK(info.n_rx == 1 && info.n_tx == 1 && info.max_rx == 32 && info.state == BL_PORT_CONFIGURED);
    CHECK(info.doorbell == BL_DOORBELL_NONE && info.numa == -1 && info.if_name[0] == 0);
    CHECK(info.pool_page >= 4096 && (info.caps & BL_CAP_SET_MAC) != 0 && info.mtu == 1500);
    CHECK(bl_mac_set(a, wanted) == 0 && bl_mac_get(a, mac) == 0 && memcmp(mac, wanted, 6) == 0);
    CHECK_FAILS(bl_mac_set(a, group), EINVAL, "station");
    CHECK(bl_mtu_get(a, &mtu) == 0 && mtu == 1500);
    CHECK_FAILS(bl_mtu_set(a, 1400), ENOTSUP, "MTU");
    CHECK(bl_promiscuous_get(a) == 1);
    CHECK_FAILS(bl_promiscuous_set(a, 0), ENOTSUP, "promiscuous");
    CHECK(bl_link_get(a, &link, sizeof link) == 0 && link.up == 1);
    CHECK_FAILS(bl_port_rx_fd(a, 0), ENOTSUP, "descriptor");
    CHECK(bl_port_close(a) == 0);
    CHECK_FAILS(bl_port_info_get(a, &info, sizeof info), ENODEV, "no port");
    CHECK(bl_pool_free(pool) == 0);
}

static void drivers_are_listed(void)
{
    struct bl_driver_info d;
    uint32_t i, n = bl_driver_count(), seen = 0;
    for (i = 0; i < n; i++) {
        CHECK(bl_driver_get(i, &d, sizeof d) == 0);
        printf("%s\n", d.name);
        seen += strcmp(d.name, "net_null") == 0;
    }
    CHECK(seen == 1);
    CHECK_FAILS(bl_driver_get(n, &d, sizeof d), EINVAL, "there are");
}

struct seen {
    uint32_t events, calls;
};

static void on_event(uint16_t port, uint32_t events, void *user)
{
    struct seen *s = (struct seen *)user;
    (void)port;
    __atomic_fetch_or(&s->events, events, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->calls, 1, __ATOMIC_RELEASE);
}

static void events_are_taken_and_called(void)
{
    static struct seen seen;
    struct bl_pool *pool = a_pool("events", 256);
    uint16_t a = a_port("net_null0", pool);
    int i;
    CHECK(bl_events_fd() >= 0);
    CHECK(bl_port_events_take(a) == 0);
    CHECK(bl_port_on_event(a, on_event, &seen) == 0);
    CHECK_FAILS(bl_port_on_event(a, NULL, NULL), EINVAL, "NULL");
    CHECK(bl_link_set(a, 0) == 0);
    for (i = 0; i < 5000 && __atomic_load_n(&seen.calls, __ATOMIC_ACQUIRE) == 0; i++)
        sleep_ms(1);
    CHECK(seen.events == BL_EVENT_LINK);
    CHECK(bl_port_events_take(a) == (int)BL_EVENT_LINK);
    CHECK(bl_port_close(a) == 0);
    CHECK(bl_pool_free(pool) == 0);
}

static void a_group_refuses_what_stages_nothing(void)
{
    struct bl_pool *pool = a_pool("group", 256);
    struct bl_poll_group *g = bl_poll_group_create();
    uint16_t a = a_port("net_null0", pool);
    CHECK(g != NULL);
    CHECK(bl_poll_group_add_rx(g, a, 0) == 0);
    CHECK_FAILS(bl_poll_group_add_rx(g, a, 0), EEXIST, "already");
    CHECK_FAILS(bl_poll_group_add_rx(g, a, 7), EINVAL, "queue 7");
    CHECK_FAILS(bl_poll_group_add_tx(g, a, 0, 32, 100), ENOTSUP, "stages nothing");
    CHECK_FAILS(bl_poll_group_add_rx(NULL, a, 0), EINVAL, "NULL");
    CHECK(bl_poll_group_flush(g) == 0);
    CHECK(bl_poll_group_free(g) == 0);
    CHECK(bl_port_close(a) == 0);
    CHECK(bl_pool_free(pool) == 0);
}

int main(void)
{
    CHECK(bl_check_abi() == 0);
    null_ports_forward();
    a_stopped_port_takes_nothing();
    stop_and_start_from_another_thread_during_traffic();
    a_port_is_found_and_says_what_it_is();
    events_are_taken_and_called();
    a_group_refuses_what_stages_nothing();
    drivers_are_listed();
    CHECK(bl_cleanup() == 0);
    return 0;
}
