/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The sent segments of a flow: received, lost, retransmitted. A segment, also a retransmission, is lost when one that was sent
 * later is received (RACK, RFC 8985). */

#ifndef NETFOLD_SCOREBOARD_H
#define NETFOLD_SCOREBOARD_H

#include "tcp.h"

enum { NP_SEGMENT_SACKED = 1, NP_SEGMENT_LOST = 2, NP_RETRANSMITTED = 4, NP_SENT_TWICE = 8, NP_NO_SEGMENT = -1 };

/* `mark` has bits of the above. NP_RETRANSMITTED: lost and in flight again; NP_SENT_TWICE: sent more than once. */
struct np_segment {
    np_time sent; /* the last transmission */
    int64_t previous, next; /* among the retransmitted, by transmission; NP_NO_SEGMENT */
    uint8_t mark;
};

/* Reserves memory for the segment `next`. Returns 0, or -1 if there is no memory. */
int np_board_reserve(struct np_flow *f);
/* Records that a segment is sent now, for the first time or as a retransmission. */
void np_board_on_send(struct np_flow *f, uint32_t segment, np_time now);
/* Returns the lowest lost segment that is not in flight, which is sent now. There is one: lost > retransmitted. */
uint32_t np_board_retransmit(struct np_flow *f, np_time now);
/* Applies an acknowledgment; returns the number of newly acknowledged segments. */
uint32_t np_board_on_ack(struct np_flow *f, const struct np_packet *p, np_time now);
/* Marks lost segments. Returns when to check again, or NP_NEVER if no segment is lost by time alone. */
np_time np_board_detect_losses(struct np_flow *f, np_time now);
/* Marks all segments that are not acknowledged as lost. */
void np_board_on_timeout(struct np_flow *f);
void np_board_free(struct np_flow *f);

#endif
