/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of fields up to 64 bits that C does not have. The 32-bit saturating forms are branch-free, so that
 * a loop over lanes becomes vector code.
 */
#ifndef SS_ARITH_H
#define SS_ARITH_H

#include "bits.h"

/* int<32> |+| and |-|. */
SS_INLINE int32_t ss_sadd32(int32_t a, int32_t b) {
    uint32_t r = (uint32_t)a + (uint32_t)b;
    int32_t over = (int32_t)((r ^ (uint32_t)a) & (r ^ (uint32_t)b)); /* negative if it overflowed */
    int32_t limit = (a >> 31) ^ INT32_MAX;
    return over < 0 ? limit : (int32_t)r;
}
SS_INLINE int32_t ss_ssub32(int32_t a, int32_t b) {
    uint32_t r = (uint32_t)a - (uint32_t)b;
    int32_t over = (int32_t)((r ^ (uint32_t)a) & ((uint32_t)a ^ (uint32_t)b));
    int32_t limit = (a >> 31) ^ INT32_MAX;
    return over < 0 ? limit : (int32_t)r;
}
/* bit<32> |+| and |-|. */
SS_INLINE uint32_t ss_uadd32(uint32_t a, uint32_t b) {
    uint32_t r = a + b;
    return r < a ? UINT32_MAX : r;
}
SS_INLINE uint32_t ss_usub32(uint32_t a, uint32_t b) { return a > b ? a - b : 0; }

/* The 64-bit forms. */
SS_INLINE int64_t ss_sadd64(int64_t a, int64_t b) {
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}
SS_INLINE int64_t ss_ssub64(int64_t a, int64_t b) {
    int64_t r;
    return __builtin_sub_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}
SS_INLINE uint64_t ss_uadd64(uint64_t a, uint64_t b) {
    uint64_t r = a + b;
    return r < a ? UINT64_MAX : r;
}
SS_INLINE uint64_t ss_usub64(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

SS_INLINE int64_t ss_clamp_s(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }
SS_INLINE uint64_t ss_clamp_u(uint64_t v, uint64_t hi) { return v > hi ? hi : v; }

/* Shifts by any amount, as on numbers without bound. */
SS_INLINE uint32_t ss_shl32(uint32_t v, uint64_t by) { return by >= 32 ? 0 : v << by; }
SS_INLINE uint64_t ss_shl64(uint64_t v, uint64_t by) { return by >= 64 ? 0 : v << by; }
SS_INLINE uint64_t ss_shr64(uint64_t v, uint64_t by) { return by >= 64 ? 0 : v >> by; }
SS_INLINE int64_t ss_sar64(int64_t v, uint64_t by) { return v >> (by >= 63 ? 63 : by); }

/* Division by zero yields 0; BMv2 asserts there. */
SS_INLINE uint64_t ss_div(uint64_t a, uint64_t b) { return b ? a / b : 0; }
SS_INLINE uint64_t ss_mod(uint64_t a, uint64_t b) { return b ? a % b : 0; }

#endif
