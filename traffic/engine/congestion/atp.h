/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The window of ATP (NSDI 2021): halved by a mark or a loss, else one chunk larger a window. */

#ifndef NETFOLD_ATP_H
#define NETFOLD_ATP_H

#include "window.h"

enum { ATP_MAX_CWND = 100, ATP_INITIAL_CWND = 16 };

void atp_on_acks(struct nf_window *w, const struct nf_ack_summary *acks);
void atp_on_loss(struct nf_window *w);

#endif
