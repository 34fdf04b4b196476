/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NETFOLD_LINKS_H
#define NETFOLD_LINKS_H

/* A socket that becomes readable when an interface of this network namespace appears, goes or changes. Negative errno on
 * failure. What changed is not passed on: an event can be lost when many come, so the reader looks at the interfaces. */
int links_open(void);

/* Takes all waiting events. */
void links_drain(int fd);

#endif
