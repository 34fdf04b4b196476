/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Appended to numerics/rotate.c by test_quarter_builds.py: processor time of a row to lanes, or back if that is more, over that of
 * a copy of the row. */

#include <time.h>

enum { WIDTH = 1024, ROWS = 256, RUNS = 30 };

static double processor_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double smaller(double a, double b) { return a < b ? a : b; }

NF_API double cost_in_copies(void) {
    static float from[ROWS * WIDTH], to[ROWS * WIDTH];
    static uint32_t lanes[ROWS * WIDTH / 4];
    double pack = 1e9, unpack = 1e9, copy = 1e9;
    for (int i = 0; i < ROWS * WIDTH; i++) from[i] = (float)(i % 1013) / 1013 - 0.5f;
    for (int run = 0; run < RUNS; run++) {
        struct nf_rotation r = {1, 0, 1, 8};
        double started = processor_time();
        for (r.row = 0; r.row < ROWS; r.row++)
            nf_rotate_pack(lanes + r.row * WIDTH / 4, from + r.row * WIDTH, WIDTH, 126, 182, &r);
        double packed = processor_time();
        for (r.row = 0; r.row < ROWS; r.row++)
            nf_rotate_unpack(to + r.row * WIDTH, lanes + r.row * WIDTH / 4, WIDTH, 182, 1, &r);
        double unpacked = processor_time();
        for (int row = 0; row < ROWS; row++) memcpy(to + row * WIDTH, from + row * WIDTH, 4 * WIDTH);
        double copied = processor_time();
        pack = smaller(pack, packed - started);
        unpack = smaller(unpack, unpacked - packed);
        copy = smaller(copy, copied - unpacked);
    }
    return (pack > unpack ? pack : unpack) / copy;
}
