/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Who else listens on an interface (tcpdump, Wireshark)? The quick ways to send pass the kernel's taps by, so while somebody
 * watches a port its frames must go the ordinary way, or he would see one direction only. */

#ifndef NETFOLD_TAPS_H
#define NETFOLD_TAPS_H

#include <stdbool.h>
#include <stdint.h>

enum { TAPS_MAX = 256 };

/* The packet sockets of this network namespace that take all protocols. */
struct taps {
    uint32_t count;
    struct {
        int ifindex; /* 0: all interfaces */
        uint64_t inode;
    } tap[TAPS_MAX];
};

/* Reads the kernel's list; an empty one when it cannot be read. */
void taps_read(struct taps *taps);

/* Does a socket other than `own_inode` listen on the interface? */
bool taps_watch(const struct taps *taps, int ifindex, uint64_t own_inode);

#endif
