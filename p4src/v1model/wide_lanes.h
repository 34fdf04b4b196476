// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Lanes as words of 64, the widest field that p4c takes: 2,048 bits. FOR_EACH_LANE(X), here for each word, expands
// X(0) X(1) ...: a word's field, register and statement are each written once, as a macro of that name. In place of
// common/lanes.h.

#ifndef NETFOLD_LANES
#define NETFOLD_LANES

#if LANES == 32
#define WORD_BITS 1024
#define FOR_EACH_LANE(X) X(0)
#elif LANES == 64
#define WORD_BITS 2048
#define FOR_EACH_LANE(X) X(0)
#elif LANES == 256
#define WORD_BITS 2048
#define FOR_EACH_LANE(X) X(0) X(1) X(2) X(3)
#elif LANES == 512
#define WORD_BITS 2048
#define FOR_EACH_LANE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#else
#error "LANES must be 32, 64, 256 or 512"
#endif

typedef bit<WORD_BITS> lane_field_t;

// The sign bits of all lanes of a word.
const bit<64>   SIGNS_2  = 0x8000000080000000;
const bit<256>  SIGNS_8  = SIGNS_2 ++ SIGNS_2 ++ SIGNS_2 ++ SIGNS_2;
const bit<1024> SIGNS_32 = SIGNS_8 ++ SIGNS_8 ++ SIGNS_8 ++ SIGNS_8;
const bit<2048> SIGNS_64 = SIGNS_32 ++ SIGNS_32;
const lane_field_t SIGNS = SIGNS_64[WORD_BITS - 1:0];

#endif
