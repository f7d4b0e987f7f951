/* l2fwd in C: what comes in on one port goes out of its pair. DPDK's options; the same result as the Rust program.
 *
 *     ./l2fwd --vdev net_pcap0,rx_pcap=in.pcap --vdev net_pcap1,tx_pcap=out.pcap -- -p 3 -T 1 --exit-on-eof
 *
 * Each lcore serves some ports, and has a poll group: what it sends is staged, and announced at a fill level, or when a
 * whole lap over its ports came back empty, or at a deadline.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <burstline.h>
#include <burstline/fastpath.h>

#include "stats_json.h"

#define BURST 32
#define FILL 64
#define DEADLINE_US 100
#define SPIN_LAPS 256

/* A receive queue, and where its packets go. Written by its lcore alone; read by the main one. */
struct lane {
    uint16_t from, to;
    int finite;                 /* the input ends by itself */
    int ended;                  /* it has */
    uint8_t macs[12];           /* destination and source to write */
    struct bl_mbuf *held[BURST]; /* what the output had no room for, from `first` on */
    uint16_t first, n;
    uint64_t received, taken;
    uint64_t waits;             /* packets in `held` now */
};

struct share {
    struct lane *lanes;
    unsigned n;
    uint64_t laps;
    int failed;
};

static struct lane lanes[BL_MAX_PORTS];
static struct share shares[128], *main_share;
static unsigned n_lanes, n_shares;
static int stop_all;
static volatile sig_atomic_t signalled;
static int64_t budget = INT64_MAX;

static uint64_t portmask = UINT64_MAX, wanted_packets;
static unsigned per_lcore;
static unsigned period = 10;
static int mac_updating = 1, exit_on_eof;
static double duration;
static const char *portmap, *stats_json;

static void on_signal(int number)
{
    if (signalled)
        _Exit(128 + number);
    signalled = 1;
}

static void die(const char *what)
{
    fprintf(stderr, "l2fwd: error: %s%s%s\n", what, *bl_last_error() ? ": " : "", bl_last_error());
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- options ---- */

static void usage(void)
{
    puts("l2fwd [EAL options] -- [options]\n"
         "  -p PORTMASK         ports to use, hexadecimal (default: all)\n"
         "  -q NQ               ports that an lcore serves at most (default: shared out evenly)\n"
         "  -T PERIOD           seconds between tables, 0 for none (10)\n"
         "  --portmap PAIRS     (0,1)(2,3) (default: neighbours; an odd one out to itself)\n"
         "  --no-mac-updating   leave the addresses as they are\n"
         "  --duration SECONDS  end after this time\n"
         "  --packets N         end after this many received packets\n"
         "  --exit-on-eof       end when every input that can end has ended\n"
         "  --stats-json FILE   write the counters at exit; - is stdout");
}

static uint64_t number(const char *option, const char *text, int base, uint64_t least, uint64_t most)
{
    char *end;
    unsigned long long n;
    errno = 0;
    n = strtoull(text, &end, base);
    if (errno || *text == '-' || *text == 0 || *end || n < least || n > most) {
        fprintf(stderr, "l2fwd: error: %s '%s': not a number of %llu to %llu\n", option, text,
                (unsigned long long)least, (unsigned long long)most);
        exit(1);
    }
    return n;
}

static void read_options(int argc, char **argv)
{
    static const struct option longs[] = {
        { "portmap", required_argument, NULL, 'm' },      { "no-mac-updating", no_argument, NULL, 'n' },
        { "mac-updating", no_argument, NULL, 'u' },       { "duration", required_argument, NULL, 'd' },
        { "packets", required_argument, NULL, 'N' },      { "exit-on-eof", no_argument, NULL, 'e' },
        { "stats-json", required_argument, NULL, 'j' },   { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    char *end;
    int c;
    while ((c = getopt_long(argc, argv, "p:q:T:Ph", longs, NULL)) != -1) {
        switch (c) {
        case 'p': portmask = number("-p", optarg, 16, 1, UINT64_MAX); break;
        case 'q': per_lcore = (unsigned)number("-q", optarg, 10, 1, BL_MAX_PORTS); break;
        case 'T': period = (unsigned)number("-T", optarg, 10, 0, 86400); break;
        case 'P': break; /* all ports are promiscuous where they can be */
        case 'm': portmap = optarg; break;
        case 'n': mac_updating = 0; break;
        case 'u': mac_updating = 1; break;
        case 'd':
            duration = strtod(optarg, &end);
            if (*end || !(duration > 0 && duration <= 1e9)) {
                fprintf(stderr, "l2fwd: error: --duration '%s': not a number of seconds\n", optarg);
                exit(1);
            }
            break;
        case 'N':
            wanted_packets = number("--packets", optarg, 10, 1, INT64_MAX);
            budget = (int64_t)wanted_packets;
            break;
        case 'e': exit_on_eof = 1; break;
        case 'j': stats_json = optarg; break;
        case 'h': usage(); exit(0);
        default: exit(1); /* getopt said why */
        }
    }
    if (optind != argc) {
        fprintf(stderr, "l2fwd: error: '%s' is no option\n", argv[optind]);
        exit(1);
    }
}

/* ---- ports ---- */

static void add_lane(int from, int to)
{
    struct bl_port_info in;
    struct lane *l = &lanes[n_lanes];
    unsigned i;
    for (i = 0; i < n_lanes; i++)
        if (lanes[i].from == from)
            die("--portmap: a port stands in two pairs");
    if (bl_port_info_get((uint16_t)from, &in, sizeof in) < 0)
        die("port");
    memset(l, 0, sizeof *l);
    l->from = (uint16_t)from;
    l->to = (uint16_t)to;
    l->finite = (in.caps & BL_CAP_FINITE_INPUT) != 0;
    n_lanes++;
}

static void pair(int a, int b)
{
    if (!(portmask >> a & 1) || !(portmask >> b & 1))
        die("--portmap: a port is not in the mask of -p");
    add_lane(a, b);
    if (a != b)
        add_lane(b, a);
}

static int by_port(const void *a, const void *b)
{
    return ((const struct lane *)a)->from - ((const struct lane *)b)->from;
}

static void pair_ports(void)
{
    const char *p = portmap;
    int a = -1, port, used = 0;
    if (bl_port_count() == 0)
        die("no port: name devices with --vdev, for example --vdev net_null0 --vdev net_null1");
    for (port = 0; port < 64 && portmask != UINT64_MAX; port++)
        if (portmask >> port & 1 && bl_port_next((uint32_t)port) != port)
            die("-p: the mask names a port that there is not");
    while (p && *p) {
        int b;
        used = 0;
        if (sscanf(p, " (%d ,%d )%n", &a, &b, &used) != 2 || used == 0 || a < 0 || b < 0 || a > 63 || b > 63)
            die("--portmap: not (A,B)(C,D)");
        pair(a, b);
        p += used;
        p += *p == ',';
    }
    if (!portmap) {
        for (port = bl_port_next(0), a = -1; port >= 0; port = bl_port_next((uint32_t)port + 1)) {
            if (!(portmask >> port & 1))
                continue;
            if (a < 0) {
                a = port;
            } else {
                pair(a, port);
                a = -1;
            }
        }
        if (a >= 0)
            pair(a, a);
    }
    qsort(lanes, n_lanes, sizeof *lanes, by_port);
}

static void start_ports(struct bl_pool *pool)
{
    struct bl_port_info info;
    unsigned i;
    for (i = 0; i < n_lanes; i++) {
        uint16_t port = lanes[i].from;
        struct bl_port_conf conf = { .size = sizeof conf, .n_rx = 1, .n_tx = 1 };
        if (bl_port_info_get(port, &info, sizeof info) < 0)
            die("port");
        /* A frame that may be longer than a room comes as a chain, where the device can do that. */
        conf.scatter = info.mtu + 18 > 2048 && (info.caps & BL_CAP_RX_SCATTER);
        if (bl_port_configure(port, &conf) < 0 || bl_rx_queue_setup(port, 0, 0, pool) < 0 ||
            bl_tx_queue_setup(port, 0, 0) < 0)
            die("port");
    }
    for (i = 0; i < n_lanes; i++) {
        uint8_t dst[6] = { 2, 0, 0, 0, 0, (uint8_t)lanes[i].to };
        memcpy(lanes[i].macs, dst, 6);
        if (bl_port_start(lanes[i].from) < 0 || bl_mac_get(lanes[i].to, lanes[i].macs + 6) < 0)
            die("port");
        if (bl_port_info_get(lanes[i].from, &info, sizeof info) == 0 && (info.caps & BL_CAP_PROMISC))
            bl_promiscuous_set(lanes[i].from, 1);
    }
}

/* One pool for all: every descriptor may hold a packet, every lane a burst, every lcore a cache. */
static struct bl_pool *make_pool(void)
{
    struct bl_pool_conf conf = { .size = sizeof conf, .name = "l2fwd", .cache = 256 };
    struct bl_pool *pool;
    struct bl_port_info info;
    uint32_t n = n_shares * 384;
    unsigned i;
    for (i = 0; i < n_lanes; i++) {
        if (bl_port_info_get(lanes[i].from, &info, sizeof info) < 0)
            die("port");
        n += 2 * info.desc_default + BURST;
    }
    conf.n = n < 8192 ? 8192 : n;
    pool = bl_pool_create(&conf);
    if (!pool)
        die("pool");
    return pool;
}

/* ---- the loop ---- */

static void address(struct lane *l)
{
    uint16_t i;
    for (i = 0; i < l->n; i++) {
        struct bl_mbuf *m = l->held[i];
        if (m->data_len >= 12 && !(m->ol_flags & (BL_F_READ_ONLY | BL_F_FOREIGN)) && bl_mbuf_is_exclusive(m))
            memcpy(bl_mbuf_data(m), l->macs, 12);
        else if (m->pkt_len >= 12 && bl_mbuf_write(m, 0, 12, l->macs) < 0) {
            /* Shared or read-only bytes: a copy goes on. */
            struct bl_mbuf *copy = bl_mbuf_copy(m, m->pool, 0, m->pkt_len);
            if (copy && bl_mbuf_write(copy, 0, 12, l->macs) == 0) {
                bl_mbuf_free(m);
                l->held[i] = copy;
            } else {
                bl_mbuf_free(copy);
            }
        }
    }
}

/* Takes up to a burst out of what --packets leaves. */
static uint16_t claim(void)
{
    int64_t left = __atomic_load_n(&budget, __ATOMIC_RELAXED), take;
    do {
        take = left < BURST ? left : BURST;
    } while (!__atomic_compare_exchange_n(&budget, &left, left - take, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return (uint16_t)take;
}

static void send(struct lane *l)
{
    uint16_t sent = bl_tx_burst_more(l->to, 0, l->held + l->first, l->n);
    l->first = (uint16_t)(l->first + sent);
    l->n = (uint16_t)(l->n - sent);
    __atomic_store_n(&l->taken, l->taken + sent, __ATOMIC_RELAXED);
    __atomic_store_n(&l->waits, l->n, __ATOMIC_RELAXED);
}

static uint16_t turn(struct lane *l)
{
    uint16_t want = BURST, got;
    if (l->n) { /* the output was full: its input waits with it */
        send(l);
        if (l->n)
            return 0;
    }
    if (wanted_packets)
        want = claim();
    l->first = 0;
    got = bl_rx_burst(l->from, 0, l->held, want);
    if (wanted_packets)
        __atomic_fetch_add(&budget, want - got, __ATOMIC_RELAXED);
    if (got == 0)
        return 0;
    l->n = got;
    __atomic_store_n(&l->received, l->received + got, __ATOMIC_RELAXED);
    if (mac_updating)
        address(l);
    send(l);
    return got;
}

static struct bl_poll_group *group_of(struct share *s)
{
    struct bl_poll_group *g = bl_poll_group_create();
    unsigned i;
    for (i = 0; g && i < s->n; i++) {
        int e;
        if (bl_poll_group_add_rx(g, s->lanes[i].from, 0) < 0)
            die("poll group");
        e = bl_poll_group_add_tx(g, s->lanes[i].to, 0, FILL, DEADLINE_US);
        if (e < 0 && e != -ENOTSUP) /* a driver that stages nothing */
            die("poll group");
    }
    return g;
}

static void watch(void);

static int forward(void *arg)
{
    struct share *s = (struct share *)arg;
    int is_main = s == main_share;
    struct bl_poll_group *g;
    unsigned i, empty = 0;
    double last;
    if (bl_thread_id() < 0 && bl_thread_register() < 0)
        die("thread");
    g = group_of(s);
    while (!__atomic_load_n(&stop_all, __ATOMIC_ACQUIRE)) {
        unsigned got = 0;
        for (i = 0; i < s->n; i++)
            got += turn(&s->lanes[i]);
        __atomic_store_n(&s->laps, s->laps + 1, __ATOMIC_RELAXED);
        if (is_main && (s->laps & 63) == 0)
            watch();
        empty = got ? 0 : empty + 1;
        if (empty > SPIN_LAPS || s->n == 0)
            sched_yield();
    }
    /* What still waits: for as long as it moves. */
    for (i = 0; i < s->n; i++) {
        struct lane *l = &s->lanes[i];
        for (last = now(); l->n && now() - last < 0.2;) {
            uint16_t before = l->n;
            send(l);
            if (l->n != before)
                last = now();
        }
        bl_mbuf_free_bulk(l->held + l->first, l->n);
    }
    return bl_poll_group_free(g) < 0;
}

/* ---- beside the loop: the reasons to end, and the table ---- */

static void table(void)
{
    unsigned i;
    printf("%-6s %14s %14s %10s\n", "port", "received", "sent", "dropped");
    for (i = 0; i < n_lanes; i++) {
        struct bl_stats s;
        if (bl_stats_get(lanes[i].from, &s, sizeof s) == 0)
            printf("%-6u %14llu %14llu %10llu\n", (unsigned)lanes[i].from, (unsigned long long)s.ipackets,
                   (unsigned long long)s.opackets,
                   (unsigned long long)(s.imissed + s.ierrors + s.oerrors + s.rx_nombuf));
    }
    fflush(stdout);
}

/* Nothing waits, and nothing moved while every lcore went round three times; or there is no use in waiting. */
static int quiet(double at)
{
    static double since, moved_at;
    static uint64_t moved, laps[128];
    uint64_t sum = 0, waits = 0;
    unsigned i;
    for (i = 0; i < n_lanes; i++) {
        sum += __atomic_load_n(&lanes[i].received, __ATOMIC_RELAXED) + __atomic_load_n(&lanes[i].taken, __ATOMIC_RELAXED);
        waits += __atomic_load_n(&lanes[i].waits, __ATOMIC_RELAXED);
    }
    if (since == 0 || sum != moved) {
        since = since == 0 ? at : since;
        moved = sum;
        moved_at = at;
        for (i = 0; i < n_shares; i++)
            laps[i] = __atomic_load_n(&shares[i].laps, __ATOMIC_RELAXED);
        return waits == 0 && at - since > 1;
    }
    if (waits)
        return at - moved_at > 2;
    for (i = 0; i < n_shares; i++)
        if (__atomic_load_n(&shares[i].laps, __ATOMIC_RELAXED) - laps[i] < 3)
            return 0;
    return 1;
}

static void watch(void)
{
    static double begun, next, next_table;
    uint64_t received = 0;
    int over = exit_on_eof, stop = signalled;
    double at = now();
    unsigned i;
    if (begun == 0) {
        begun = at;
        next_table = at + period;
    }
    if (at < next && !stop)
        return;
    next = at + 0.002;
    for (i = 0; i < n_lanes; i++) {
        int e = bl_port_events_take(lanes[i].from);
        if (e > 0 && e & (int)(BL_EVENT_END_OF_INPUT | BL_EVENT_REMOVED))
            lanes[i].ended = 1;
        over &= lanes[i].ended || !lanes[i].finite;
        received += __atomic_load_n(&lanes[i].received, __ATOMIC_RELAXED);
    }
    if (wanted_packets && received >= wanted_packets)
        over = 1;
    if (period && at >= next_table) {
        next_table += period;
        table();
    }
    stop |= (duration > 0 && at - begun >= duration) || (over && quiet(at));
    if (stop)
        __atomic_store_n(&stop_all, 1, __ATOMIC_RELEASE);
}

static void share_out(void)
{
    int n_lcores = bl_lcore_count(), i;
    unsigned at = 0, each = per_lcore;
    if (n_lcores < 0)
        die("lcores");
    if (each == 0)
        each = (n_lanes + (unsigned)n_lcores - 1) / (unsigned)n_lcores;
    if (each * (unsigned)n_lcores < n_lanes)
        die("-q: more ports than the lcores may serve; give more lcores with -l");
    n_shares = (unsigned)n_lcores;
    for (i = 0; i < n_lcores; i++) {
        shares[i].lanes = &lanes[at];
        shares[i].n = n_lanes - at < each ? n_lanes - at : each;
        at += shares[i].n;
    }
}

static void run(void)
{
    int i, main_lcore = bl_lcore_main(), result;
    for (i = 0; i < (int)n_shares; i++)
        if (bl_lcore_get((uint32_t)i) == main_lcore)
            main_share = &shares[i];
    for (i = 0; i < (int)n_shares; i++) {
        int lcore = bl_lcore_get((uint32_t)i);
        if (lcore != main_lcore && bl_lcore_launch((uint32_t)lcore, forward, &shares[i]) < 0)
            die("lcore");
    }
    forward(main_share);
    for (i = 0; i < (int)n_shares; i++) {
        int lcore = bl_lcore_get((uint32_t)i);
        if (lcore != main_lcore && bl_lcore_wait((uint32_t)lcore, 10000, &result) < 0)
            die("lcore");
    }
}

static void say(uint32_t level, const char *text, void *user)
{
    (void)user;
    fprintf(stderr, "l2fwd: %s: %s\n", level == BL_LOG_ERROR ? "error" : "warning", text);
}

int main(int argc, char **argv)
{
    static struct final_stats final[BL_MAX_PORTS];
    struct sigaction action;
    struct bl_pool_info info;
    struct bl_pool *pool;
    unsigned i, finite = 0;
    int used;

    bl_log_set(say, NULL, BL_LOG_WARNING);
    if (bl_check_abi() < 0)
        die("library");
    used = bl_init(argc, argv);
    if (used == -ECANCELED) {
        puts(bl_last_error());
        usage();
        return 0;
    }
    if (used < 0)
        die("init");
    read_options(argc - used, argv + used);
    pair_ports();
    for (i = 0; i < n_lanes; i++)
        finite += lanes[i].finite != 0;
    if (exit_on_eof && !finite)
        die("--exit-on-eof: no port's input ends by itself (a capture's does: rx_pcap=FILE)");
    share_out();
    pool = make_pool();
    start_ports(pool);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);

    run();

    /* Everything is given back before it is counted. */
    for (i = 0; i < n_lanes; i++) {
        final[i].port = lanes[i].from;
        if (bl_port_stop(lanes[i].from) < 0)
            die("stop");
    }
    for (i = 0; i < n_lanes; i++)
        if (bl_port_info_get(final[i].port, &final[i].info, sizeof final[i].info) < 0 ||
            bl_stats_get(final[i].port, &final[i].s, sizeof final[i].s) < 0)
            die("counters");
    if (!stats_json || strcmp(stats_json, "-") != 0)
        table();
    if (bl_cleanup() < 0 || bl_pool_info_get(pool, &info, sizeof info) < 0)
        die("cleanup");
    if (stats_json && write_json(stats_json, final, n_lanes, &info) < 0)
        die("--stats-json: cannot be written");
    if (bl_pool_free(pool) < 0)
        die("pool");
    return 0;
}
