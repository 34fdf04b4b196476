/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "departures.h"

enum {
    SK_BUFF = 256,
    SHARED_INFO = 320, /* at the end of the data */
    HEADROOM = 16,
    SMALL_HEAD = 576, /* of a short frame, and of one whose data is in pages */
    PAGE = 4096,
};

void ss_departures_add(struct ss_departures *departures, uint64_t packets, uint64_t charge, uint64_t now_ns) {
    if (!packets) return;
    departures->packets += packets;
    departures->charge += charge;
    if (departures->count < SS_DEPARTURES) {
        departures->count++;
        departures->batch[(departures->first + departures->count - 1) % SS_DEPARTURES].handed_over_ns = now_ns;
    }
    uint32_t last = (departures->first + departures->count - 1) % SS_DEPARTURES;
    departures->batch[last].packets = departures->packets;
    departures->batch[last].charge = departures->charge;
}

struct ss_backlog ss_departures_backlog(struct ss_departures *departures, uint64_t outstanding, uint64_t now_ns) {
    uint64_t gone = outstanding < departures->charge ? departures->charge - outstanding : 0;
    uint32_t first = departures->first;
    for (; departures->count && (!outstanding || departures->batch[first].charge <= gone); departures->count--) {
        departures->gone_packets = departures->batch[first].packets;
        departures->gone_charge = departures->batch[first].charge;
        departures->first = first = (first + 1) % SS_DEPARTURES;
    }
    if (!departures->count) return (struct ss_backlog){0};
    uint64_t packets = departures->batch[first].packets - departures->gone_packets;
    uint64_t charge = departures->batch[first].charge - departures->gone_charge;
    uint64_t part = gone > departures->gone_charge ? gone - departures->gone_charge : 0;
    return (struct ss_backlog){
        .packets = (uint32_t)(departures->packets - departures->gone_packets - packets * part / charge),
        .wait_ns = now_ns - departures->batch[first].handed_over_ns,
    };
}

uint32_t ss_frame_charge(uint32_t length) {
    if (length + HEADROOM >= PAGE) return SK_BUFF + SMALL_HEAD + (length + PAGE - 1) / PAGE * PAGE;
    uint32_t data = ((length + HEADROOM + 63) & ~63u) + SHARED_INFO, size = 1024;
    if (data <= SMALL_HEAD) return SK_BUFF + SMALL_HEAD;
    while (size < data) size *= 2;
    return SK_BUFF + size;
}
