/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * flow_fuzz SEED: a random network, flows and jobs, run to the end; all must be over, and no link over its capacity. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "flow.h"

enum { LINKS = 12, FLOWS = 300, JOBS = 6, CHANNELS = 2 * JOBS, BUCKETS = 3, ROUNDS = 4, ROW = 5 };

static uint64_t state;

static double drawn(void) { /* xorshift64* */
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (double)((state * 2685821657736338717u) >> 11) / 9007199254740992.0;
}

int main(int count, char **arguments) {
    enum { ALL = FLOWS + CHANNELS, REDUCED = JOBS * ROUNDS * BUCKETS };
    static double capacity[LINKS], queue[LINKS], sent[LINKS], mean[LINKS], most[LINKS];
    static double coefs[ALL * ROW], weight[ALL], cap[ALL], window[ALL], delay[ALL], start[FLOWS], bytes[FLOWS];
    static double completion[FLOWS], carried[CHANNELS], busy[CHANNELS], fastest[CHANNELS];
    static int64_t rows[ALL + 1], channels[JOBS + 1], buckets[JOBS + 1], iterations[JOBS], first[JOBS], reduced[JOBS];
    static int32_t links[ALL * ROW];
    static uint8_t type[ALL];
    static double share[CHANNELS], size[JOBS * BUCKETS], ready[JOBS * BUCKETS], compute[JOBS], latency[JOBS];
    static double local[JOBS], begin[JOBS], began[JOBS * ROUNDS], ended[JOBS * ROUNDS], was[REDUCED], done[REDUCED];
    state = 88172645463325252u + 7919 * strtoull(count > 1 ? arguments[1] : "1", NULL, 10);
    for (int l = 0; l < LINKS; l++) {
        capacity[l] = 1e3 + 1e4 * drawn();
        queue[l] = 1e3;
    }
    int64_t used = 0;
    for (int i = 0; i < ALL; i++) {
        int from = (int)(drawn() * (LINKS - ROW)), length = 1 + (int)(drawn() * ROW);
        for (int e = 0; e < length; e++) {
            links[used] = from + e;
            coefs[used++] = i < FLOWS ? 1 : 0.5 + 2 * drawn();
        }
        rows[i + 1] = used;
        weight[i] = drawn() < 0.5 ? 1 : 0.2 + 5 * drawn();
        cap[i] = drawn() < 0.8 ? INFINITY : 100 + 1e3 * drawn();
        type[i] = (uint8_t)(4 * drawn());
        window[i] = 1e3 * drawn();
        delay[i] = 0.01 * drawn();
    }
    for (int i = 0; i < FLOWS; i++) {
        start[i] = (i ? start[i - 1] : 0) + (drawn() < 0.3 ? 0 : drawn());
        bytes[i] = 1 + 1e4 * drawn() * drawn();
    }
    for (int j = 0; j < JOBS; j++) {
        channels[j + 1] = 2 * (j + 1);
        buckets[j + 1] = BUCKETS * (j + 1);
        iterations[j] = ROUNDS;
        first[j] = ROUNDS * j;
        reduced[j] = ROUNDS * BUCKETS * j;
        share[2 * j] = share[2 * j + 1] = 0.5;
        compute[j] = 0.1 * (int)(30 * drawn());
        begin[j] = 10 * drawn();
        for (int b = 0; b < BUCKETS; b++) {
            size[BUCKETS * j + b] = 1 + 1e4 * drawn();
            ready[BUCKETS * j + b] = compute[j] * b / BUCKETS; /* some at once */
        }
    }
    for (int i = 0; i < FLOWS; i++) completion[i] = NAN;
    struct sf_network network = {LINKS, capacity, queue, 500, 100, 1, drawn() < 0.5 ? 0 : 0.02, 1, sent, mean, most};
    struct sf_streams streams = {FLOWS,  CHANNELS, rows,  links, coefs,      weight,  cap,  type,
                                 window, delay,    start, bytes, completion, carried, busy, fastest};
    struct sf_jobs jobs = {JOBS,  channels,   buckets, share,   size,  ready, compute, latency, local,
                           begin, iterations, first,   reduced, began, ended, was,     done};
    double end;
    int64_t events;
    if (sf_flow_run(&network, &streams, &jobs, INFINITY, &end, &events)) return 1;
    for (int i = 0; i < FLOWS; i++)
        if (!(completion[i] > 0)) return printf("flow %d is not over\n", i), 1;
    for (int j = 0; j < JOBS; j++)
        if (!(ended[ROUNDS * (j + 1) - 1] > begin[j])) return printf("job %d is not over\n", j), 1;
    for (int l = 0; l < LINKS; l++)
        if (sent[l] > capacity[l] * end * (1 + 1e-6))
            return printf("link %d carried %g of %g bytes\n", l, sent[l], capacity[l] * end), 1;
    printf("%lld events, over at %.17g\n", (long long)events, end);
    return 0;
}
