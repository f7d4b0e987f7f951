/* What both programs share: short rounds of a work, its cycles per packet, and how they are told. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if !defined(__x86_64__)
#error "the time stamp counter is x86's"
#endif

enum { BURST = 32, ROUNDS_MOST = 1001 };

/* Does `laps` laps; returns how many packets (or pointers) that were. */
typedef uint64_t (*work_fn)(uint32_t laps);

static inline uint32_t from_env(const char *name, uint32_t usual)
{
    const char *s = getenv(name);
    long n = s ? strtol(s, NULL, 10) : 0;
    return n > 0 ? (uint32_t)n : usual;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Prints `name<TAB>least<TAB>median` over ROUNDS rounds of LAPS × `weight` laps, in cycles of the time stamp counter a packet.
 * A round is a few milliseconds, so that on a machine with other load some rounds are left alone: the least is theirs. */
static inline void measure(const char *name, work_fn work, uint32_t weight)
{
    static double per_packet[ROUNDS_MOST];
    uint32_t rounds = from_env("ROUNDS", 25), laps = from_env("LAPS", 5000) * weight, i;
    if (rounds > ROUNDS_MOST)
        rounds = ROUNDS_MOST;
    work(laps); /* warm */
    for (i = 0; i < rounds; i++) {
        uint64_t begin = __builtin_ia32_rdtsc(), n = work(laps), end = __builtin_ia32_rdtsc();
        if (n == 0) {
            fprintf(stderr, "%s: no packet went through\n", name);
            exit(1);
        }
        per_packet[i] = (double)(end - begin) / (double)n;
    }
    qsort(per_packet, rounds, sizeof per_packet[0], by_size);
    printf("%s\t%.2f\t%.2f\n", name, per_packet[0], per_packet[rounds / 2]);
    fflush(stdout);
}

#endif
