/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* NF_API marks the functions that the engine's library exports; all others are hidden (-fvisibility=hidden). A library that
 * compiles parts of the engine in (RoCE, the packet simulator) defines it empty and exports none of them. */

#ifndef NETFOLD_EXPORT_H
#define NETFOLD_EXPORT_H

#ifndef NF_API
#define NF_API __attribute__((visibility("default")))
#endif

#endif
