/* What the library says goes to the callback, and nowhere else. */
#include "check.h"

static char said[4096];
static uint32_t worst = 99;

static void hear(uint32_t level, const char *text, void *user)
{
    CHECK(user == said);
    if (level < worst)
        worst = level;
    strncat(said, text, sizeof said - strlen(said) - 1);
    /* A callback may set the callback. */
    CHECK(bl_log_set(hear, said, BL_LOG_DEBUG) == 0);
}

int main(void)
{
    struct bl_pool_conf conf;
    struct bl_pool *pool;
    struct bl_mbuf *m;
    CHECK_FAILS(bl_log_set(hear, said, 0), EINVAL, "level 0");
    CHECK_FAILS(bl_log_set(hear, said, 6), EINVAL, "level 6");
    CHECK(bl_log_set(hear, said, BL_LOG_DEBUG) == 0);
    memset(&conf, 0, sizeof conf);
    conf.size = sizeof conf;
    conf.name = "watched";
    conf.n = 64;
    conf.flags = BL_POOL_DEBUG | BL_POOL_NO_HUGE;
    pool = bl_pool_create(&conf);
    CHECK(pool != NULL);
    m = bl_mbuf_alloc(pool);
    CHECK(m != NULL && bl_pool_close(pool) == 0);
    CHECK(strstr(said, "watched") != NULL && worst == BL_LOG_WARNING);
    bl_mbuf_free(m);
    said[0] = 0;
    CHECK(bl_log_set(NULL, NULL, BL_LOG_ERROR) == 0);
    conf.name = "unheard";
    pool = bl_pool_create(&conf);
    m = bl_mbuf_alloc(pool);
    CHECK(bl_pool_close(pool) == 0);
    bl_mbuf_free(m);
    CHECK(said[0] == 0);
    return 0;
}
