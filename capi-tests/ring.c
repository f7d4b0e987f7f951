/* Rings: capacity, modes, all or nothing, and two threads. */
#include <pthread.h>
#include <sched.h>

#include "check.h"

#define WORDS 200000u

static void *put(void *arg)
{
    struct bl_ring *r = (struct bl_ring *)arg;
    uintptr_t next = 1;
    while (next <= WORDS) {
        void *objs[32];
        uint32_t i, n = WORDS - next + 1 < 32 ? (uint32_t)(WORDS - next + 1) : 32, done;
        for (i = 0; i < n; i++)
            objs[i] = (void *)(next + i);
        done = bl_ring_enqueue_burst(r, objs, n, NULL);
        if (done == 0)
            sched_yield();
        next += done;
    }
    return NULL;
}

static void words_cross_in_order(uint32_t flags)
{
    struct bl_ring *r = bl_ring_create("cross", 256, flags);
    pthread_t thread;
    uintptr_t next = 1;
    CHECK(r != NULL);
    CHECK(pthread_create(&thread, NULL, put, r) == 0);
    while (next <= WORDS) {
        void *objs[32];
        uint32_t i, n = bl_ring_dequeue_burst(r, objs, 32, NULL);
        if (n == 0)
            sched_yield();
        for (i = 0; i < n; i++)
            CHECK(objs[i] == (void *)next++);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(bl_ring_count(r) == 0);
    CHECK(bl_ring_free(r) == 0);
}

int main(void)
{
    void *objs[8] = { NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }, *out[8];
    uint32_t left = 0;
    struct bl_ring *r = bl_ring_create("exact", 5, BL_RING_EXACT);
    CHECK(r != NULL);
    CHECK(bl_ring_capacity(r) == 5 && bl_ring_free_count(r) == 5 && bl_ring_count(r) == 0);
    CHECK(bl_ring_enqueue_bulk(r, objs, 6, NULL) == 0);
    CHECK(bl_ring_enqueue_bulk(r, objs, 3, &left) == 3 && left == 2);
    CHECK(bl_ring_enqueue_burst(r, objs, 8, &left) == 2 && left == 0);
    CHECK(bl_ring_enqueue_burst(r, NULL, 0, NULL) == 0 && bl_ring_enqueue_burst(r, NULL, 0, &left) == 0);
    CHECK(bl_ring_dequeue_bulk(r, out, 6, NULL) == 0);
    CHECK(bl_ring_dequeue_bulk(r, out, 4, &left) == 4 && left == 1);
    CHECK(bl_ring_dequeue_burst(r, out, 8, &left) == 1 && left == 0);
    CHECK(bl_ring_free(r) == 0);
    CHECK(bl_ring_create("odd", 5, 0) == NULL);
    CHECK(strstr(bl_last_error(), "8") != NULL);
    CHECK(bl_ring_create("none", 0, 0) == NULL);
    CHECK(bl_ring_create("flags", 8, 64) == NULL);
    CHECK(bl_ring_create(NULL, 8, 0) == NULL);
    CHECK_FAILS(bl_ring_free(NULL), EINVAL, "NULL");
    CHECK(bl_ring_count(NULL) == 0);
    words_cross_in_order(0);
    words_cross_in_order(BL_RING_SINGLE_PRODUCER | BL_RING_SINGLE_CONSUMER);
    return 0;
}
