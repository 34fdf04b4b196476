/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The work of senders that a network device takes over (`ethtool -k`). */

#ifndef SS_OFFLOADS_H
#define SS_OFFLOADS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether the device segments super-frames of UDP and of TCP (tx-udp-segmentation, tx-tcp-segmentation, with
 * scatter-gather and checksums). `fd`: any socket in the device's network namespace. */
bool ss_offloads_has_segmentation(int fd, const char *ifname);

/* Returns whether the device receives in `queues` queues, and sends in as many or more. One that does not report has one. */
bool ss_device_has_queues(int fd, const char *ifname, uint32_t queues);

#endif
