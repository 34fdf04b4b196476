/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The fingerprint that workers compare in a call's opening, docs/reference/protocol.md, section 5.3. */

#ifndef NETFOLD_FINGERPRINT_H
#define NETFOLD_FINGERPRINT_H

#include "call.h"

/* Computes the key of the call's profile: size, dtype, operation and scheme. */
uint64_t fingerprint_profile(const struct nf_call *c);

/* Hashes the profile and the number of the call. */
void fingerprint_compute(struct nf_call *c);

/* Adds how the rows are divided and which scales are predicted. Workers where these differ are not in the same call. */
void fingerprint_add_division(struct nf_call *c);

/* Returns one of FINGERPRINT_LANES parts of 16 bits. */
static inline uint32_t fingerprint_lane(const struct nf_call *c, int lane) {
    return (uint32_t)(c->attempt.fingerprint >> 16 * lane & 0xFFFF);
}

#endif
