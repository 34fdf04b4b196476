/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Limits of calls that the packets of docs/reference/protocol.md, sections 5.3 and 5.6, depend on. */

#ifndef NETFOLD_CALL_NUMBERS_H
#define NETFOLD_CALL_NUMBERS_H

enum {
    NF_MAX_CALLS_IN_FLIGHT = 4,                      /* fewer where packets have fewer than 9 lanes */
    CALL_MODULUS = 2 * NF_MAX_CALLS_IN_FLIGHT + 1,   /* call numbers are sent modulo this where packets have enough lanes */
    CALL_ID_BYTES = 6,                               /* of a whole call number: no job makes 2^48 calls */
    FINGERPRINT_LANES = 3
};

#endif
