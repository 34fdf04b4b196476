/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SS_NETLINK_MONITOR_H
#define SS_NETLINK_MONITOR_H

/* Opens a netlink socket that is readable when an interface of this network namespace appears, vanishes or changes. Returns a
 * negative errno on failure. Events carry no contents, since the kernel drops some under load: read the interfaces instead. */
int ss_netlink_open(void);

/* Discards the queued events. */
void ss_netlink_drain(int fd);

#endif
