/* Packets: their bytes, chains, clones, and buffers from elsewhere. */
#include "check.h"

static struct bl_pool *pool;

/* A packet of `len` bytes that count up from `first`, in as many segments as `pool`'s rooms of 2048 need. */
static struct bl_mbuf *counting(uint32_t len, uint8_t first)
{
    struct bl_mbuf *head = NULL;
    do {
        struct bl_mbuf *m = bl_mbuf_alloc(pool);
        uint32_t i, n = len < 2048 ? len : 2048;
        uint8_t *p;
        CHECK(m != NULL);
        p = (uint8_t *)bl_mbuf_append(m, n);
        CHECK(p != NULL);
        for (i = 0; i < n; i++)
            p[i] = first++;
        len -= n;
        if (head)
            CHECK(bl_mbuf_chain(head, m) == 0);
        else
            head = m;
    } while (len);
    CHECK(bl_mbuf_validate(head) == 0);
    return head;
}

static void room_is_made_and_cut(void)
{
    struct bl_mbuf *m = counting(100, 0);
    uint8_t *p = (uint8_t *)bl_mbuf_prepend(m, 14);
    CHECK(p != NULL && p == bl_mbuf_data(m) && bl_mbuf_pkt_len(m) == 114);
    CHECK(bl_mbuf_prepend(m, 4000) == NULL);
    CHECK(strstr(bl_last_error(), "242") != NULL);
    CHECK(bl_mbuf_append(m, 60000) == NULL);
    CHECK(bl_mbuf_adj(m, 14) == 0 && bl_mbuf_trim(m, 10) == 0);
    CHECK(bl_mbuf_pkt_len(m) == 90 && *(uint8_t *)bl_mbuf_data(m) == 0);
    CHECK_FAILS(bl_mbuf_adj(m, 91), EINVAL, "90");
    CHECK_FAILS(bl_mbuf_trim(m, 91), EINVAL, "90");
    CHECK_FAILS(bl_mbuf_adj(NULL, 1), EINVAL, "NULL");
    bl_mbuf_free(m);
    bl_mbuf_free(NULL);
}

static void chains_are_read_written_split_and_joined(void)
{
    uint8_t buf[300];
    struct bl_mbuf *m = counting(5000, 0), *rest;
    int i;
    CHECK(m->nb_segs == 3 && bl_mbuf_last(m)->data_len == 904);
    CHECK(bl_mbuf_read(m, 2000, 300, buf) == 0);
    for (i = 0; i < 300; i++)
        CHECK(buf[i] == (uint8_t)(2000 + i));
    CHECK_FAILS(bl_mbuf_read(m, 4900, 300, buf), EINVAL, "5000");
    CHECK_FAILS(bl_mbuf_read(m, UINT32_MAX, UINT32_MAX, buf), EINVAL, "5000");
    memset(buf, 0xaa, sizeof buf);
    CHECK(bl_mbuf_write(m, 2040, 20, buf) == 0);
    CHECK(((uint8_t *)bl_mbuf_data(m))[2047] == 0xaa && *(uint8_t *)bl_mbuf_data(m->next) == 0xaa);
    CHECK(bl_mbuf_contiguous(m, 2040, 20) == NULL && bl_mbuf_contiguous(m, 2048, 20) == bl_mbuf_data(m->next));
    rest = bl_mbuf_split(m, 3000, pool);
    CHECK(rest != NULL && m->pkt_len == 3000 && rest->pkt_len == 2000);
    CHECK(bl_mbuf_validate(m) == 0 && bl_mbuf_validate(rest) == 0);
    CHECK(bl_mbuf_read(rest, 0, 1, buf) == 0 && buf[0] == (uint8_t)3000);
    CHECK(bl_mbuf_split(m, 3001, pool) == NULL);
    CHECK(bl_mbuf_chain(m, rest) == 0 && m->pkt_len == 5000);
    CHECK_FAILS(bl_mbuf_chain(m, m), EINVAL, "itself");
    rest = bl_mbuf_split_segments(m, 1);
    CHECK(rest != NULL && m->pkt_len == 2048 && rest->pkt_len == 2952);
    CHECK_FAILS(bl_mbuf_linearize(rest), EMSGSIZE, "2952");
    bl_mbuf_free(rest);
    bl_mbuf_free(m);
    m = counting(1000, 0);
    CHECK(bl_mbuf_chain(m, counting(1000, 7)) == 0 && bl_mbuf_linearize(m) == 0);
    CHECK(m->nb_segs == 1 && m->data_len == 2000 && ((uint8_t *)bl_mbuf_data(m))[1000] == 7);
    m->pkt_len = 1;
    CHECK_FAILS(bl_mbuf_validate(m), EINVAL, "agree");
    m->pkt_len = 2000;
    bl_mbuf_free(m);
}

static void a_clone_shares_and_a_copy_does_not(void)
{
    struct bl_mbuf *m = counting(3000, 0), *clone, *copy;
    uint8_t byte = 1;
    m->ol_flags |= BL_F_RX_RSS_HASH;
    m->hash.rss = 42;
    clone = bl_mbuf_clone(m, pool);
    CHECK(clone != NULL && clone->pkt_len == 3000 && clone->hash.rss == 42 && bl_mbuf_data(clone) == bl_mbuf_data(m));
    CHECK((clone->ol_flags & BL_F_INDIRECT) && bl_mbuf_refcnt(m) == 2 && !bl_mbuf_is_exclusive(clone));
    CHECK_FAILS(bl_mbuf_write(m, 0, 1, &byte), EBUSY, "copy");
    copy = bl_mbuf_copy(m, pool, 1000, 2000);
    CHECK(copy != NULL && copy->pkt_len == 2000 && *(uint8_t *)bl_mbuf_data(copy) == (uint8_t)1000);
    CHECK(bl_mbuf_write(copy, 0, 1, &byte) == 0);
    CHECK(bl_mbuf_copy(m, pool, 2999, 2) == NULL);
    bl_mbuf_free(m);
    CHECK(((uint8_t *)bl_mbuf_data(clone))[5] == 5 && bl_mbuf_is_exclusive(clone));
    bl_mbuf_free(clone);
    bl_mbuf_free(copy);
}

static int freed;

static void on_free(void *addr, void *opaque)
{
    CHECK(*(uint8_t *)addr == 9 && opaque == &freed);
    freed++;
}

static void an_external_buffer_is_given_back_once(void)
{
    static uint8_t bytes[1000];
    static struct bl_ext_shared shared;
    struct bl_mbuf *m = bl_mbuf_alloc(pool), *clone;
    bytes[0] = 9;
    CHECK(bl_ext_shared_init(&shared, on_free, &freed) == 0 && shared.refcnt == 1);
    CHECK_FAILS(bl_mbuf_attach_ext(m, NULL, BL_NO_IOVA, 1000, &shared), EINVAL, "null");
    CHECK(bl_mbuf_attach_ext(m, bytes, BL_NO_IOVA, 1000, &shared) == 0);
    CHECK_FAILS(bl_mbuf_attach_ext(m, bytes, BL_NO_IOVA, 1000, &shared), EBUSY, "attached");
    CHECK(bl_mbuf_append(m, 1000) == bytes);
    clone = bl_mbuf_clone(m, pool);
    CHECK(clone != NULL && shared.refcnt == 2);
    bl_mbuf_free(m);
    CHECK(freed == 0);
    bl_mbuf_free(clone);
    CHECK(freed == 1);
}

int main(void)
{
    pool = a_pool("mbuf", 256);
    room_is_made_and_cut();
    chains_are_read_written_split_and_joined();
    a_clone_shares_and_a_copy_does_not();
    an_external_buffer_is_given_back_once();
    CHECK(bl_pool_available(pool) == 256);
    CHECK(bl_pool_free(pool) == 0);
    return 0;
}
