/* The packet layout as the library sees it: what it writes is where the header says. Offsets are asserted in the header. */
#include "check.h"
#include "burstline/fastpath.h"

int main(void)
{
    struct bl_pool *pool = a_pool("layout", 64);
    struct bl_mbuf *m = bl_mbuf_alloc(pool);
    struct bl_mbuf x;
    uint8_t *raw = (uint8_t *)m;
    uint16_t v16;
    CHECK(m->data_off == BL_HEADROOM && m->refcnt == 1 && m->nb_segs == 1 && m->port == BL_NO_PORT);
    CHECK(m->pkt_len == 0 && m->data_len == 0 && m->next == NULL && m->pool == pool && m->ol_flags == 0);
    CHECK(m->buf_len == 2048 + BL_HEADROOM && m->buf_iova == (uint64_t)(uintptr_t)m->buf_addr);
    CHECK(((uintptr_t)m & 63) == 0);
    CHECK(bl_mbuf_append(m, 77) == bl_mbuf_data(m));
    memcpy(&v16, raw + 40, 2);
    CHECK(v16 == 77 && bl_mbuf_data_len(m) == 77 && bl_mbuf_pkt_len(m) == 77);
    CHECK(bl_mbuf_headroom(m) == BL_HEADROOM && bl_mbuf_tailroom(m) == 2048 - 77);
    CHECK(bl_mbuf_last(m) == m && bl_mbuf_refcnt(m) == 1 && bl_mbuf_is_exclusive(m));
    memset(&x, 0, sizeof x);
    x.l2_len = 14;
    x.l3_len = 20;
    x.l4_len = 20;
    x.tso_segsz = 1448;
    /* Bit positions of rte_mbuf on a little-endian machine. */
    CHECK(x.tx_offload == (UINT64_C(14) | UINT64_C(20) << 7 | UINT64_C(20) << 16 | UINT64_C(1448) << 24));
    bl_mbuf_free(m);
    CHECK(bl_pool_free(pool) == 0);
    CHECK(bl_check_abi() == 0);
    CHECK(bl_fastpath_rows != NULL && ((uintptr_t)bl_fastpath_rows & 63) == 0);
    return 0;
}
