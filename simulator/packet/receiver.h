/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The receiving end of a flow: what is there, and when it says so. */

#ifndef NETFOLD_RECEIVER_H
#define NETFOLD_RECEIVER_H

#include "tcp.h"

void np_receiver_packet(struct np_tcp *t, struct np_flow *f, const struct np_packet *p);
void np_receiver_answer(struct np_tcp *t, struct np_flow *f);

#endif
