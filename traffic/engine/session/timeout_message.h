/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Names the results that a call lacks at its deadline, by tree: the message of NF_TIMEOUT. */

#ifndef NETFOLD_TIMEOUT_MESSAGE_H
#define NETFOLD_TIMEOUT_MESSAGE_H

#include <stddef.h>

#include "state.h"

/* Writes at most `capacity` bytes with the final 0; empty where nothing is in flight. */
void timeout_message_write(const struct nf_core *core, char *to, size_t capacity);

#endif
