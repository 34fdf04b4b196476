/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The hash of fingerprints and random bits, docs/reference/protocol.md, section 5.3. */

#ifndef NETFOLD_MIX_H
#define NETFOLD_MIX_H

#include <stdint.h>

/* This is splitmix64. */
static inline uint64_t nf_mix(uint64_t hash, uint64_t number) {
    hash = (hash ^ number) + 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9u;
    hash = (hash ^ hash >> 27) * 0x94D049BB133111EBu;
    return hash ^ hash >> 31;
}

#endif
