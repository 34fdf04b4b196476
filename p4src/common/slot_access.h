// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What a packet does to the registers of its slot: docs/protocol.md, section 3.2, for each kind of register. The actions
// are the target's own; each register is touched by one of them.

#ifndef NETFOLD_SLOT_ACCESS
#define NETFOLD_SLOT_ACCESS

#define TAG_ACCESS(name, compare_and_claim, read, reset) \
    @hidden table name { \
        key = { \
            meta.role        : exact; \
            hdr.netfold.kind : ternary; \
        } \
        actions = { compare_and_claim; read; reset; NoAction; } \
        const entries = { \
            (role_t.INNER,   _)            : compare_and_claim(); \
            (role_t.ROOT,    _)            : compare_and_claim(); \
            (role_t.MANAGER, kind_t.RESET) : reset(); \
            (role_t.MANAGER, _)            : read(); \
        } \
        const default_action = NoAction(); \
    }

// Bitmap and marks: joining twice is joining once.
#define JOINT_ACCESS(name, claim, join, read) \
    @hidden table name { \
        key = { \
            meta.role     : ternary; \
            meta.slot.age : ternary; \
        } \
        actions = { claim; join; read; NoAction; } \
        const entries = { \
            (role_t.MANAGER, _)           : read(); \
            (_,              age_t.NEWER) : claim(); \
            (_,              age_t.SAME)  : join(); \
        } \
        const default_action = NoAction(); \
    }

// A lane is added once for each child.
#define LANE_ACCESS(name, claim, add, read) \
    @hidden table name { \
        key = { \
            meta.role       : ternary; \
            meta.slot.age   : ternary; \
            meta.slot.again : ternary; \
        } \
        actions = { claim; add; read; NoAction; } \
        const entries = { \
            (role_t.MANAGER, _,           _) : read(); \
            (_,              age_t.NEWER, _) : claim(); \
            (_,              age_t.SAME,  0) : add(); \
            (_,              age_t.SAME,  _) : read(); \
        } \
        const default_action = NoAction(); \
    }

#endif
