// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// No headers beside the protocol's own.

#ifndef NETFOLD_TRANSPORT_HEADERS
#define NETFOLD_TRANSPORT_HEADERS

#define TRANSPORT_HEADER
#define TRANSPORT_TRAILER

#endif
