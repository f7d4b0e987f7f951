/* The bursts as inline functions: optional. Include this instead of burstline.h, and the calls of the library's symbols
 * (one jump, and two range checks) become what they do inside. Everything else stays as it is.
 *
 * The rows are part of what BL_LAYOUT_VERSION counts: call bl_check_abi() once before the first burst.
 */
#ifndef BURSTLINE_FASTPATH_H
#define BURSTLINE_FASTPATH_H

#include "../burstline.h"

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc11-extensions"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef uint16_t (*bl_burst_fn)(void *queue, struct bl_mbuf **pkts, uint16_t n);
typedef uint32_t (*bl_flush_fn)(void *queue, uint8_t cause);

/* What a queue's calls go through. The library's: never written by a program but for `inside`. */
struct BL_ALIGNED(64) bl_fastpath_rx {
    bl_burst_fn burst;
    void *queue;
    uint32_t inside;
};

struct BL_ALIGNED(64) bl_fastpath_tx {
    bl_burst_fn burst;
    bl_burst_fn more;
    bl_flush_fn flush;
    void *queue;
    uint32_t inside;
};

struct bl_fastpath_row {
    struct bl_fastpath_rx rx;
    struct bl_fastpath_tx tx;
};

BL_STATIC_ASSERT(sizeof(struct bl_fastpath_row) == 128, "struct bl_fastpath_row");
BL_STATIC_ASSERT(offsetof(struct bl_fastpath_rx, burst) == 0, "rx.burst");
BL_STATIC_ASSERT(offsetof(struct bl_fastpath_rx, queue) == 8, "rx.queue");
BL_STATIC_ASSERT(offsetof(struct bl_fastpath_rx, inside) == 16, "rx.inside");
BL_STATIC_ASSERT(offsetof(struct bl_fastpath_tx, burst) == 0, "tx.burst");
BL_STATIC_ASSERT(offsetof(struct bl_fastpath_tx, more) == 8, "tx.more");
BL_STATIC_ASSERT(offsetof(struct bl_fastpath_tx, flush) == 16, "tx.flush");
BL_STATIC_ASSERT(offsetof(struct bl_fastpath_tx, queue) == 24, "tx.queue");
BL_STATIC_ASSERT(offsetof(struct bl_fastpath_tx, inside) == 32, "tx.inside");

/* The first of BL_MAX_PORTS * BL_MAX_QUEUES rows. */
extern struct bl_fastpath_row *const bl_fastpath_rows;

/* The row of a queue; NULL beyond the table. */
static inline struct bl_fastpath_row *bl_fastpath_row_inline(uint16_t port, uint16_t queue)
{
    if (__builtin_expect(port >= BL_MAX_PORTS || queue >= BL_MAX_QUEUES, 0))
        return NULL;
    return bl_fastpath_rows + (uint32_t)port * BL_MAX_QUEUES + queue;
}

/* Memory order, with the letters of the library's side (src/port/row.rs): `inside` is set before the function is loaded (a: a
 * compiler fence; stop makes it a full one on every core), with a new function comes its queue (c), and stop sees what was
 * done inside once it sees `inside` cleared (b). */

/* As bl_rx_burst. */
static inline uint16_t bl_rx_burst_inline(uint16_t port, uint16_t queue, struct bl_mbuf **pkts, uint16_t n)
{
    struct bl_fastpath_row *row = bl_fastpath_row_inline(port, queue);
    bl_burst_fn f;
    if (__builtin_expect(!row || !pkts, 0))
        return 0;
    __atomic_store_n(&row->rx.inside, 1u, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a */
    f = __atomic_load_n(&row->rx.burst, __ATOMIC_ACQUIRE); /* c */
    n = f(__atomic_load_n(&row->rx.queue, __ATOMIC_RELAXED), pkts, n);
    __atomic_store_n(&row->rx.inside, 0u, __ATOMIC_RELEASE); /* b */
    return n;
}

static inline uint16_t bl_fastpath_tx_inline(struct bl_fastpath_tx *tx, bl_burst_fn *fn, struct bl_mbuf **pkts, uint16_t n)
{
    bl_burst_fn f;
    __atomic_store_n(&tx->inside, 1u, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a */
    f = __atomic_load_n(fn, __ATOMIC_ACQUIRE); /* c */
    n = f(__atomic_load_n(&tx->queue, __ATOMIC_RELAXED), pkts, n);
    __atomic_store_n(&tx->inside, 0u, __ATOMIC_RELEASE); /* b */
    return n;
}

/* As bl_tx_burst. */
static inline uint16_t bl_tx_burst_inline(uint16_t port, uint16_t queue, struct bl_mbuf **pkts, uint16_t n)
{
    struct bl_fastpath_row *row = bl_fastpath_row_inline(port, queue);
    if (__builtin_expect(!row || !pkts, 0))
        return 0;
    return bl_fastpath_tx_inline(&row->tx, &row->tx.burst, pkts, n);
}

/* As bl_tx_burst_more. */
static inline uint16_t bl_tx_burst_more_inline(uint16_t port, uint16_t queue, struct bl_mbuf **pkts, uint16_t n)
{
    struct bl_fastpath_row *row = bl_fastpath_row_inline(port, queue);
    if (__builtin_expect(!row || !pkts, 0))
        return 0;
    return bl_fastpath_tx_inline(&row->tx, &row->tx.more, pkts, n);
}

#ifdef __cplusplus
}
#endif

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

#define bl_rx_burst bl_rx_burst_inline
#define bl_tx_burst bl_tx_burst_inline
#define bl_tx_burst_more bl_tx_burst_more_inline

#endif /* BURSTLINE_FASTPATH_H */
