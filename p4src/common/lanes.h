// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// FOR_EACH_LANE(X) expands X(00) X(01) ... X(ff) X(100) ... X(1ff): one lane a call, named by its number in hexadecimal.
// FOR_EACH_LATER_16_LANES(X) expands X(1) X(2) ...: the first digit of all numbers from 10 on.
// A lane's field, register and statement are each written once, as a macro of that name.

#ifndef NETFOLD_LANES
#define NETFOLD_LANES

#define LANES_16(X, p) \
    X(p##0) X(p##1) X(p##2) X(p##3) X(p##4) X(p##5) X(p##6) X(p##7) \
    X(p##8) X(p##9) X(p##a) X(p##b) X(p##c) X(p##d) X(p##e) X(p##f)
#define LANES_64(X, a, b, c, d) LANES_16(X, a) LANES_16(X, b) LANES_16(X, c) LANES_16(X, d)

#define LANES_256(X) \
    LANES_64(X, 0, 1, 2, 3) LANES_64(X, 4, 5, 6, 7) LANES_64(X, 8, 9, a, b) LANES_64(X, c, d, e, f)

#if LANES == 32
#define FOR_EACH_LATER_16_LANES(X) X(1)
#define FOR_EACH_LANE(X) LANES_16(X, 0) LANES_16(X, 1)
#elif LANES == 64
#define FOR_EACH_LATER_16_LANES(X) X(1) X(2) X(3)
#define FOR_EACH_LANE(X) LANES_64(X, 0, 1, 2, 3)
#elif LANES == 256
#define FOR_EACH_LANE(X) LANES_256(X)
#elif LANES == 512
#define FOR_EACH_LANE(X) \
    LANES_256(X) \
    LANES_64(X, 10, 11, 12, 13) LANES_64(X, 14, 15, 16, 17) LANES_64(X, 18, 19, 1a, 1b) LANES_64(X, 1c, 1d, 1e, 1f)
#else
#error "LANES must be 32, 64, 256 or 512"
#endif

#endif
