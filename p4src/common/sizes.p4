// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Every size of the program, in one place; -DNAME=value overrides one. What the sizes cost is in p4src/README.md.

#ifndef NETFOLD_SIZES
#define NETFOLD_SIZES

#ifndef LANES
#define LANES 64             // int32 values in a packet: 32, 64 or 256
#endif

#ifndef SLOTS
#define SLOTS 4096           // slots of the switch, shared out to trees in power-of-two ranges
#endif

#ifndef TREES
#define TREES 1024           // trees that a switch can take part in; a power of two, at most 1024
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

#define VERDICT_CELLS (TREES * 32)  // see Verdicts in docs/protocol.md, section 4

#endif
