/* The packet buffer: 128 bytes, two cache lines. Written by hand, since cbindgen makes neither anonymous unions nor bit
 * fields; the offsets are asserted here and in the library from the same numbers.
 *
 * Field names and meaning are DPDK's (rte_mbuf), so that a data-plane programmer already knows them. A packet belongs to
 * one thread at a time; what it does not own it does not touch. Functions here are for the owning thread, and each is also a
 * symbol of the library, for languages that cannot read this header.
 */
#ifndef BURSTLINE_MBUF_H
#define BURSTLINE_MBUF_H

#include <stddef.h>
#include <stdint.h>

/* Changes whenever this file's layout or the rows of fastpath.h do: see bl_check_abi. */
#define BL_LAYOUT_VERSION 1u

#if defined(__cplusplus)
#define BL_STATIC_ASSERT(cond, text) static_assert(cond, text)
#else
#define BL_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif
#define BL_ALIGNED(n) __attribute__((aligned(n)))

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wgnu-anonymous-struct"
#pragma clang diagnostic ignored "-Wnested-anon-types"
#pragma clang diagnostic ignored "-Wc11-extensions"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ol_flags. Bit positions are DPDK's, but for BL_F_READ_ONLY and BL_F_FOREIGN, which take bits that are free there.
 * READ_ONLY, FOREIGN, EXTERNAL and INDIRECT speak of one segment; the others of the packet, in its first segment. */
#define BL_F_RX_VLAN (UINT64_C(1) << 0)          /* a VLAN tag was seen */
#define BL_F_RX_RSS_HASH (UINT64_C(1) << 1)      /* hash.rss is set */
#define BL_F_RX_L4_CKSUM_BAD (UINT64_C(1) << 3)
#define BL_F_RX_IP_CKSUM_BAD (UINT64_C(1) << 4)
#define BL_F_RX_VLAN_STRIPPED (UINT64_C(1) << 6) /* the tag is in vlan_tci, no longer in the data */
#define BL_F_RX_IP_CKSUM_GOOD (UINT64_C(1) << 7)
#define BL_F_RX_L4_CKSUM_GOOD (UINT64_C(1) << 8)
#define BL_F_RX_LRO (UINT64_C(1) << 16)          /* merged from several packets */
#define BL_F_RX_TIMESTAMP (UINT64_C(1) << 38)    /* timestamp is set: ns */
#define BL_F_READ_ONLY (UINT64_C(1) << 39)       /* the bytes must not be written */
#define BL_F_FOREIGN (UINT64_C(1) << 40)         /* a peer can still write the bytes: copy before believing them */
#define BL_F_TX_TCP_SEG (UINT64_C(1) << 50)
#define BL_F_TX_TCP_CKSUM (UINT64_C(1) << 52)
#define BL_F_TX_UDP_CKSUM (UINT64_C(3) << 52)
#define BL_F_TX_IP_CKSUM (UINT64_C(1) << 54)
#define BL_F_TX_IPV4 (UINT64_C(1) << 55)
#define BL_F_TX_IPV6 (UINT64_C(1) << 56)
#define BL_F_TX_VLAN (UINT64_C(1) << 57)         /* insert vlan_tci at send */
#define BL_F_EXTERNAL (UINT64_C(1) << 61)        /* the buffer is external: shinfo is a struct bl_ext_shared */
#define BL_F_INDIRECT (UINT64_C(1) << 62)        /* the buffer is borrowed: shinfo is a struct bl_mbuf */

/* buf_iova of memory that no device can reach. */
#define BL_NO_IOVA UINT64_MAX
/* port of a packet that came from no port. */
#define BL_NO_PORT UINT16_MAX

struct bl_pool;

/* One segment of a packet. Fields marked "first" hold for the packet, in its first segment. */
struct BL_ALIGNED(64) bl_mbuf {
    /* First line. */
    void *buf_addr;         /* first byte of the buffer */
    uint64_t buf_iova;      /* its address for a device, or BL_NO_IOVA */
    uint16_t data_off;      /* from buf_addr to the first data byte */
    uint16_t refcnt;        /* references to the buffer; atomic: read it by bl_mbuf_refcnt, never write it */
    uint16_t nb_segs;       /* first: segments of the packet */
    uint16_t port;          /* first: input port, or BL_NO_PORT */
    uint64_t ol_flags;      /* BL_F_... or-ed */
    uint32_t packet_type;   /* first: protocol layers recognised by the receiver */
    uint32_t pkt_len;       /* first: bytes of the whole packet */
    uint16_t data_len;      /* bytes of this segment */
    uint16_t vlan_tci;      /* first: VLAN tag, when the flags say so */
    struct {
        uint32_t rss;       /* first: RSS hash, with BL_F_RX_RSS_HASH */
        uint32_t driver;    /* first: a driver's own */
    } hash;
    uint16_t vlan_tci_outer;
    uint16_t buf_len;       /* bytes of the buffer */
    struct bl_pool *pool;   /* where the header returns to */
    /* Second line. */
    struct bl_mbuf *next;   /* next segment, or NULL */
    __extension__ union {
        uint64_t tx_offload;
        __extension__ struct {
            uint64_t l2_len : 7;   /* bytes of the Ethernet header with its tags */
            uint64_t l3_len : 9;
            uint64_t l4_len : 8;
            uint64_t tso_segsz : 16; /* payload bytes of a segment, with BL_F_TX_TCP_SEG */
            uint64_t outer_l3_len : 9;
            uint64_t outer_l2_len : 7;
            uint64_t tx_offload_unused : 8;
        };
    };
    void *shinfo;           /* the library's, see BL_F_EXTERNAL and BL_F_INDIRECT */
    uint64_t timestamp;     /* first: ns, with BL_F_RX_TIMESTAMP */
    uint32_t dynfield[8];   /* first: room for dynamic fields */
};

/* The shared part of an external buffer: see bl_ext_shared_init. */
struct bl_ext_shared {
    void (*free_cb)(void *addr, void *opaque);
    void *opaque;
    uint32_t refcnt;        /* atomic */
};

BL_STATIC_ASSERT(sizeof(struct bl_mbuf) == 128, "struct bl_mbuf");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, buf_addr) == 0, "buf_addr");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, buf_iova) == 8, "buf_iova");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, data_off) == 16, "data_off");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, refcnt) == 18, "refcnt");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, nb_segs) == 20, "nb_segs");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, port) == 22, "port");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, ol_flags) == 24, "ol_flags");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, packet_type) == 32, "packet_type");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, pkt_len) == 36, "pkt_len");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, data_len) == 40, "data_len");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, vlan_tci) == 42, "vlan_tci");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, hash) == 44, "hash");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, vlan_tci_outer) == 52, "vlan_tci_outer");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, buf_len) == 54, "buf_len");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, pool) == 56, "pool");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, next) == 64, "next");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, tx_offload) == 72, "tx_offload");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, shinfo) == 80, "shinfo");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, timestamp) == 88, "timestamp");
BL_STATIC_ASSERT(offsetof(struct bl_mbuf, dynfield) == 96, "dynfield");
BL_STATIC_ASSERT(sizeof(struct bl_ext_shared) == 24, "struct bl_ext_shared");

/* The first byte of this segment's data. */
static inline void *bl_mbuf_data(const struct bl_mbuf *m)
{
    return (uint8_t *)m->buf_addr + m->data_off;
}

/* Bytes of this segment: not of the packet. */
static inline uint16_t bl_mbuf_data_len(const struct bl_mbuf *m)
{
    return m->data_len;
}

/* Bytes of the whole packet. */
static inline uint32_t bl_mbuf_pkt_len(const struct bl_mbuf *m)
{
    return m->pkt_len;
}

/* Bytes free before this segment's data. */
static inline uint16_t bl_mbuf_headroom(const struct bl_mbuf *m)
{
    return m->data_off;
}

/* Bytes free behind this segment's data. */
static inline uint16_t bl_mbuf_tailroom(const struct bl_mbuf *m)
{
    uint32_t used = (uint32_t)m->data_off + m->data_len;
    return (uint16_t)(used < m->buf_len ? m->buf_len - used : 0);
}

/* The packet's last segment. */
static inline struct bl_mbuf *bl_mbuf_last(const struct bl_mbuf *m)
{
    while (m->next)
        m = m->next;
    return (struct bl_mbuf *)(uintptr_t)m;
}

/* References to this segment's buffer. */
static inline uint16_t bl_mbuf_refcnt(const struct bl_mbuf *m)
{
    return __atomic_load_n(&m->refcnt, __ATOMIC_RELAXED);
}

/* 1 where no other packet refers to this segment's bytes. */
static inline int bl_mbuf_is_exclusive(const struct bl_mbuf *m)
{
    if (__atomic_load_n(&m->refcnt, __ATOMIC_ACQUIRE) != 1)
        return 0;
    if (m->ol_flags & BL_F_INDIRECT)
        return __atomic_load_n(&((const struct bl_mbuf *)m->shinfo)->refcnt, __ATOMIC_ACQUIRE) == 1;
    if (m->ol_flags & BL_F_EXTERNAL)
        return __atomic_load_n(&((const struct bl_ext_shared *)m->shinfo)->refcnt, __ATOMIC_ACQUIRE) == 1;
    return 1;
}

#ifdef __cplusplus
}
#endif

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

#endif /* BURSTLINE_MBUF_H */
