// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// FOR_EACH_LANE(X) of 512 lanes: X(00) ... X(ff) X(100) ... X(1ff). In place of common/lanes.h, which has the lanes of chips, too.

#ifndef NETFOLD_LANES
#define NETFOLD_LANES

#define LANES_16(X, p) \
    X(p##0) X(p##1) X(p##2) X(p##3) X(p##4) X(p##5) X(p##6) X(p##7) \
    X(p##8) X(p##9) X(p##a) X(p##b) X(p##c) X(p##d) X(p##e) X(p##f)
#define LANES_256(X, p) \
    LANES_16(X, p##0) LANES_16(X, p##1) LANES_16(X, p##2) LANES_16(X, p##3) \
    LANES_16(X, p##4) LANES_16(X, p##5) LANES_16(X, p##6) LANES_16(X, p##7) \
    LANES_16(X, p##8) LANES_16(X, p##9) LANES_16(X, p##a) LANES_16(X, p##b) \
    LANES_16(X, p##c) LANES_16(X, p##d) LANES_16(X, p##e) LANES_16(X, p##f)

#define FOR_EACH_LANE(X) LANES_256(X, ) LANES_256(X, 1)

#endif
