/* l2fwd's --stats-json: one object, written at exit. */
#ifndef STATS_JSON_H
#define STATS_JSON_H

#include <stdio.h>
#include <string.h>

#include <burstline.h>

struct final_stats {
    uint16_t port;
    struct bl_port_info info;
    struct bl_stats s;
};

#define FIELD(f, s, name) fprintf(f, "      \"%s\": %llu,\n", #name, (unsigned long long)(s)->name)

static void write_port(FILE *f, const struct final_stats *p)
{
    fprintf(f, "    {\n      \"port\": %u,\n      \"name\": \"%s\",\n      \"driver\": \"%s\",\n", (unsigned)p->port,
            p->info.name, p->info.driver);
    FIELD(f, &p->s, ipackets);
    FIELD(f, &p->s, opackets);
    FIELD(f, &p->s, ibytes);
    FIELD(f, &p->s, obytes);
    FIELD(f, &p->s, imissed);
    FIELD(f, &p->s, ierrors);
    FIELD(f, &p->s, oerrors);
    FIELD(f, &p->s, rx_nombuf);
    fprintf(f,
            "      \"tx_flush\": { \"burst\": %llu, \"fill\": %llu, \"idle\": %llu, \"deadline\": %llu, \"explicit\": %llu }\n"
            "    }",
            (unsigned long long)p->s.tx_flush_burst, (unsigned long long)p->s.tx_flush_fill,
            (unsigned long long)p->s.tx_flush_idle, (unsigned long long)p->s.tx_flush_deadline,
            (unsigned long long)p->s.tx_flush_explicit);
}

/* 0, or -1 where the file cannot be written. Names of ports and drivers need no escapes. */
static int write_json(const char *path, const struct final_stats *all, unsigned n, const struct bl_pool_info *pool)
{
    FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    unsigned i;
    if (!f)
        return -1;
    fprintf(f, "{\n  \"ports\": [\n");
    for (i = 0; i < n; i++) {
        write_port(f, &all[i]);
        fprintf(f, "%s\n", i + 1 < n ? "," : "");
    }
    fprintf(f,
            "  ],\n  \"pools\": [\n    { \"name\": \"%s\", \"size\": %u, \"available\": %u }\n  ],\n"
            "  \"memory\": { \"page_size\": %llu }\n}\n",
            pool->name, (unsigned)pool->n, (unsigned)pool->available, (unsigned long long)pool->room_page);
    if (fflush(f) != 0 || ferror(f))
        return -1;
    return f == stdout ? 0 : fclose(f);
}

#endif
