/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* PANAMA's window (MLSys 2021) with DCTCP's constants (RFC 8257), delay as the signal where nothing marks (RFC 6817), and the
 * rules of docs/decisions/0024 for links shared with TCP. */

#ifndef NETFOLD_PANAMA_H
#define NETFOLD_PANAMA_H

#include "window.h"

enum { PANAMA_INITIAL_CWND = 4 }; /* of each worker in each tree: a slow switch receives all of them at once */

void panama_on_acks(struct nf_window *w, const struct nf_ack_summary *acks);
void panama_on_loss(struct nf_window *w);

#endif
