/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The receiving end of a flow: received segments, and when they are acknowledged. */

#ifndef NETFOLD_RECEIVER_H
#define NETFOLD_RECEIVER_H

#include "tcp.h"

void np_receiver_on_packet(struct np_tcp *t, struct np_flow *f, const struct np_packet *p);
void np_receiver_send_ack(struct np_tcp *t, struct np_flow *f);

#endif
