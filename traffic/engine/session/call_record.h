/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The record of a call, and the ring of the last ones. */

#ifndef NETFOLD_CALL_RECORD_H
#define NETFOLD_CALL_RECORD_H

#include <stdint.h>

enum { NF_CALL_LOG = 4096 }; /* calls */

/* Times are seconds of the core's clock; 0: not yet. */
struct nf_call_record {
    int64_t number; /* in the job; -1: not started */
    int64_t bytes, context;
    int32_t outstanding; /* results that it lacked when it ended; of a call that is not finished: lacks */
    int32_t retransmits; /* of this worker while the call was started */
    uint8_t kind, dtype, state, status; /* enum nf_kind, nf_dtype, call_state, nf_status */
    uint16_t trees, epoch; /* of its last attempt */
    double submitted, started, ended;
};

struct call_log {
    int64_t count; /* calls submitted so far: the record of number `count - 1` is the last */
    struct nf_call_record records[NF_CALL_LOG];
};

#endif
