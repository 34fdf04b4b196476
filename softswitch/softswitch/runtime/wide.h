/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of more than 64 bits: two's complement, little-endian arrays of n 64-bit limbs. The translator gives each result
 * as many limbs as its range needs, so nothing here overflows unless it is meant to wrap. Results may alias inputs
 * unless a comment says otherwise.
 */
#ifndef SS_WIDE_H
#define SS_WIDE_H

#include "bits.h"

typedef uint64_t ss_limb;
/* Neither inlined nor cloned: programs call them by the thousand, and gcc's time would grow with each copy. */
#define SS_WFN static __attribute__((unused, noinline, noclone))

SS_WFN void ss_w_u(ss_limb *r, int n, uint64_t v) {
    r[0] = v;
    for (int i = 1; i < n; i++) r[i] = 0;
}
SS_WFN void ss_w_s(ss_limb *r, int n, int64_t v) {
    r[0] = (uint64_t)v;
    for (int i = 1; i < n; i++) r[i] = v < 0 ? ~0ULL : 0;
}

/* Sets r of n limbs to a of m limbs, sign-extended or cut. */
SS_WFN void ss_w_cp(ss_limb *r, int n, const ss_limb *a, int m) {
    ss_limb fill = (int64_t)a[m - 1] < 0 ? ~0ULL : 0;
    for (int i = 0; i < n; i++) r[i] = i < m ? a[i] : fill;
}
SS_WFN void ss_w_add(ss_limb *r, const ss_limb *a, const ss_limb *b, int n) {
    unsigned c = 0;
    for (int i = 0; i < n; i++) {
        unsigned __int128 t = (unsigned __int128)a[i] + b[i] + c;
        r[i] = (ss_limb)t;
        c = (unsigned)(t >> 64);
    }
}
SS_WFN void ss_w_sub(ss_limb *r, const ss_limb *a, const ss_limb *b, int n) {
    unsigned c = 0;
    for (int i = 0; i < n; i++) {
        unsigned __int128 t = (unsigned __int128)a[i] - b[i] - c;
        r[i] = (ss_limb)t;
        c = (unsigned)(t >> 64) & 1;
    }
}
/* Computes modulo 2^(64 n); r must not alias. */
SS_WFN void ss_w_mul(ss_limb *restrict r, const ss_limb *a, const ss_limb *b, int n) {
    for (int i = 0; i < n; i++) r[i] = 0;
    for (int i = 0; i < n; i++) {
        ss_limb c = 0;
        for (int j = 0; i + j < n; j++) {
            unsigned __int128 t = (unsigned __int128)a[i] * b[j] + r[i + j] + c;
            r[i + j] = (ss_limb)t;
            c = (ss_limb)(t >> 64);
        }
    }
}
SS_WFN void ss_w_and(ss_limb *r, const ss_limb *a, const ss_limb *b, int n) {
    for (int i = 0; i < n; i++) r[i] = a[i] & b[i];
}
SS_WFN void ss_w_or(ss_limb *r, const ss_limb *a, const ss_limb *b, int n) {
    for (int i = 0; i < n; i++) r[i] = a[i] | b[i];
}
SS_WFN void ss_w_xor(ss_limb *r, const ss_limb *a, const ss_limb *b, int n) {
    for (int i = 0; i < n; i++) r[i] = a[i] ^ b[i];
}
SS_WFN void ss_w_not(ss_limb *r, const ss_limb *a, int n) {
    for (int i = 0; i < n; i++) r[i] = ~a[i];
}

SS_WFN void ss_w_shl(ss_limb *r, const ss_limb *a, int n, uint64_t by) {
    uint64_t limbs = by / 64;
    unsigned s = (unsigned)(by & 63);
    for (int i = n - 1; i >= 0; i--) {
        ss_limb hi = (uint64_t)i >= limbs ? a[i - (int)limbs] : 0;
        ss_limb lo = (uint64_t)i >= limbs + 1 ? a[i - (int)limbs - 1] : 0;
        r[i] = s ? (hi << s) | (lo >> (64 - s)) : hi;
    }
}
/* Shifts arithmetically: rounds to minus infinity, as BMv2's numbers do. */
SS_WFN void ss_w_shr(ss_limb *r, const ss_limb *a, int n, uint64_t by) {
    ss_limb fill = (int64_t)a[n - 1] < 0 ? ~0ULL : 0;
    uint64_t limbs = by / 64 > (uint64_t)n ? (uint64_t)n : by / 64;
    unsigned s = (unsigned)(by & 63);
    for (int i = 0; i < n; i++) {
        ss_limb lo = (uint64_t)i + limbs < (uint64_t)n ? a[i + (int)limbs] : fill;
        ss_limb hi = (uint64_t)i + limbs + 1 < (uint64_t)n ? a[i + (int)limbs + 1] : fill;
        r[i] = s ? (lo >> s) | (hi << (64 - s)) : lo;
    }
}
/* Compares signed numbers; returns -1, 0 or 1. */
SS_WFN int ss_w_cmp(const ss_limb *a, const ss_limb *b, int n) {
    if ((int64_t)a[n - 1] != (int64_t)b[n - 1]) return (int64_t)a[n - 1] < (int64_t)b[n - 1] ? -1 : 1;
    for (int i = n - 2; i >= 0; i--)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}
/* Keeps the low w bits: as unsigned (zero above) or as signed (sign above). */
SS_WFN void ss_w_zext(ss_limb *r, int n, unsigned w) {
    for (int i = 0; i < n; i++) {
        unsigned lo = (unsigned)i * 64;
        r[i] &= w <= lo ? 0 : ss_ones(w - lo > 64 ? 64 : w - lo);
    }
}
SS_WFN void ss_w_sext(ss_limb *r, int n, unsigned w) {
    ss_limb sign = (r[(w - 1) / 64] >> ((w - 1) & 63)) & 1;
    for (int i = 0; i < n; i++) {
        unsigned lo = (unsigned)i * 64;
        ss_limb keep = w <= lo ? 0 : ss_ones(w - lo > 64 ? 64 : w - lo);
        r[i] = (r[i] & keep) | (sign ? ~keep : 0);
    }
}
/* Computes quotient and remainder of non-negative numbers; both are 0 when b is 0. q, r must not alias inputs. */
SS_WFN void ss_w_divmod(ss_limb *restrict q, ss_limb *restrict r, const ss_limb *a, const ss_limb *b, int n) {
    ss_limb zero = 0;
    for (int i = 0; i < n; i++) {
        q[i] = r[i] = 0;
        zero |= b[i];
    }
    if (!zero) return;
    for (int i = n * 64 - 1; i >= 0; i--) {
        ss_w_shl(r, r, n, 1);
        r[0] |= (a[i / 64] >> (i & 63)) & 1;
        if (ss_w_cmp(r, b, n) >= 0) {
            ss_w_sub(r, r, b, n);
            q[i / 64] |= 1ULL << (i & 63);
        }
    }
}
/* Convert between limbs and w bits on the wire, `off` bits into p. */
SS_WFN void ss_w_get(ss_limb *r, int n, const uint8_t *p, unsigned off, unsigned w) {
    for (int i = 0; i < n; i++) {
        unsigned lo = (unsigned)i * 64;
        if (lo >= w) {
            r[i] = 0;
            continue;
        }
        unsigned k = w - lo > 64 ? 64 : w - lo;
        r[i] = ss_get(p, off + w - lo - k, k);
    }
}
SS_WFN void ss_w_put(uint8_t *p, unsigned off, unsigned w, const ss_limb *a, int n) {
    for (int i = 0; i < n; i++) {
        unsigned lo = (unsigned)i * 64;
        if (lo >= w) break;
        unsigned k = w - lo > 64 ? 64 : w - lo;
        ss_put(p, off + w - lo - k, k, a[i]);
    }
}
SS_WFN int ss_w_nonzero(const ss_limb *a, int n) {
    ss_limb z = 0;
    for (int i = 0; i < n; i++) z |= a[i];
    return z != 0;
}

#endif
