// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Every size of the program; -DNAME=value overrides one. p4src/README.md has their cost.

#ifndef NETFOLD_SIZES
#define NETFOLD_SIZES

#ifndef LANES
#define LANES 64             // int32 values in a packet: 32, 64, 256 or 512
#endif

#ifndef CHILDREN
#define CHILDREN 32          // most children of a node, a bit of its bitmap each: 32, 64, 128 or 256
#endif

#ifndef SLOTS
#define SLOTS 4096           // slots of the switch, assigned to trees in power-of-two ranges
#endif

#ifndef TREES
#define TREES 1024           // trees of a switch; a power of two, at most 1024
#endif

#ifndef ADMISSIONS
#define ADMISSIONS 8192      // entries: three for each child of a node, one for each other sender of each tree
#endif

#ifndef ROUTES
#define ROUTES 2048          // IPv4 prefixes
#endif

#ifndef NEXTHOPS
#define NEXTHOPS 512         // members of all ECMP groups together
#endif

#ifndef PORTS
#define PORTS 512            // entries of the tables that have one for each port
#endif

#define VERDICT_CELLS (TREES * 32)  // see Verdicts in docs/reference/protocol.md, section 4

#endif
