/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "taps.h"

#include <linux/if_ether.h>
#include <stdio.h>

void ss_taps_read(struct ss_taps *taps) {
    char line[256];
    taps->count = 0;
    FILE *list = fopen("/proc/thread-self/net/packet", "re");
    if (!list) return;
    while (taps->count < SS_MAX_TAPS && fgets(line, sizeof line, list)) {
        unsigned protocol;
        int ifindex, running;
        unsigned long inode;
        /* The columns are: sk RefCnt Type Proto Iface R Rmem User Inode */
        int found = sscanf(line, "%*s %*s %*s %x %d %d %*s %*s %lu", &protocol, &ifindex, &running, &inode);
        if (found != 4 || protocol != ETH_P_ALL || !running) continue;
        taps->tap[taps->count].ifindex = ifindex;
        taps->tap[taps->count++].inode = inode;
    }
    fclose(list);
}

bool ss_taps_has_listener(const struct ss_taps *taps, int ifindex, uint64_t own_inode, uint32_t peers) {
    uint32_t others = 0;
    for (uint32_t i = 0; i < taps->count; i++)
        others += (taps->tap[i].ifindex == ifindex || taps->tap[i].ifindex == 0) && taps->tap[i].inode != own_inode;
    return others > peers;
}
