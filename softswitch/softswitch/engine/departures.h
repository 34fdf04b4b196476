/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The frames that a port has handed to the kernel, in order, and how many have not left yet: the queue of a link that the
 * kernel or the device holds. A charge is what the kernel reports as outstanding: bytes of memory, or descriptors. */

#ifndef SS_DEPARTURES_H
#define SS_DEPARTURES_H

#include <stdint.h>

enum { SS_DEPARTURES = 64 }; /* batches that are told apart; later ones count as one */

struct ss_departures {
    uint64_t packets, charge; /* handed over since the start */
    uint64_t gone_packets, gone_charge; /* at the end of the last batch that is gone whole */
    uint32_t first, count;
    struct {
        uint64_t handed_over_ns, packets, charge; /* the sums at its end */
    } batch[SS_DEPARTURES];
};

/* The queue that a packet meets: the packets in it, and how long the first one of them has waited. */
struct ss_backlog {
    uint32_t packets;
    uint64_t wait_ns;
};

/* Adds packets that the kernel has taken. */
void ss_departures_add(struct ss_departures *departures, uint64_t packets, uint64_t charge, uint64_t now_ns);

/* `outstanding`: the charge of what has not left. */
struct ss_backlog ss_departures_backlog(struct ss_departures *departures, uint64_t outstanding, uint64_t now_ns);

/* Returns the memory that the kernel charges a socket for a frame: sk_buff, data and skb_shared_info, in the sizes that its
 * allocator has. */
uint32_t ss_frame_charge(uint32_t length);

#endif
