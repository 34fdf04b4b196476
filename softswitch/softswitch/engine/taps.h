/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Finds packet sockets that capture on an interface (tcpdump, Wireshark). AF_XDP bypasses the kernel's taps: while an
 * interface is captured its port sends through the stack, or the capture would show one direction only. */

#ifndef SS_TAPS_H
#define SS_TAPS_H

#include <stdbool.h>
#include <stdint.h>

enum { SS_MAX_TAPS = 256 };

/* The packet sockets of this network namespace that take all protocols. */
struct ss_taps {
    uint32_t count;
    struct {
        int ifindex; /* 0: all interfaces */
        uint64_t inode;
    } tap[SS_MAX_TAPS];
};

/* Reads the kernel's list, which is empty if it cannot be read. */
void ss_taps_read(struct ss_taps *taps);

/* Returns true if a socket captures on the interface that is neither `own_inode` nor one of `peers` of the same switch. */
bool ss_taps_has_listener(const struct ss_taps *taps, int ifindex, uint64_t own_inode, uint32_t peers);

#endif
