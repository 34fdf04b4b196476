/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What a sender knows of the segments that it has sent: which are there, which are lost, which went again. A segment is lost
 * when one that went later is there, a retransmission too (RACK, RFC 8985). */

#ifndef NETFOLD_SCOREBOARD_H
#define NETFOLD_SCOREBOARD_H

#include "tcp.h"

enum { NP_SACKED = 1, NP_LOST = 2, NP_RESENT = 4, NP_TWICE = 8, NP_NO_SEGMENT = -1 };

/* `mark`: of the above; NP_RESENT: it is lost and under way again, NP_TWICE: it went more than once. */
struct np_segment {
    np_time sent; /* the last time */
    int64_t before, behind; /* among those that are NP_RESENT, in the order in which they went; NP_NO_SEGMENT */
    uint8_t mark;
};

/* Room for the segment `next`. 0, or -1: no memory. */
int np_board_room(struct np_flow *f);
/* A new segment, or an old one once more, goes now. */
void np_board_sent(struct np_flow *f, uint32_t segment, np_time now);
/* The lowest lost segment that is not under way again; it goes now. There is one: lost > resent. */
uint32_t np_board_again(struct np_flow *f, np_time now);
/* Takes an acknowledgment in; how many segments became known to be there. */
uint32_t np_board_take(struct np_flow *f, const struct np_packet *p, np_time now);
/* Takes for lost what is; when to look again, NP_NEVER if nothing will be lost by waiting alone. */
np_time np_board_judge(struct np_flow *f, np_time now);
/* A timeout: all that is not known to be there is lost. */
void np_board_all_lost(struct np_flow *f);
void np_board_free(struct np_flow *f);

#endif
