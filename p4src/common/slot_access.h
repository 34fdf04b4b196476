// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What a packet does to the registers of its slot: docs/reference/protocol.md, section 3.2, for each kind of register. The target
// defines the actions; a packet runs one of them on each register.

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
            (role_t.INNER,      _)            : compare_and_claim(); \
            (role_t.ROOT,       _)            : compare_and_claim(); \
            (role_t.MANAGEMENT, kind_t.RESET) : reset(); \
            (role_t.MANAGEMENT, _)            : read(); \
        } \
        const default_action = NoAction(); \
    }

// Bitmap and attributes: merging is idempotent.
#define MERGE_ACCESS(name, claim, merge, read) \
    @hidden table name { \
        key = { \
            meta.role     : ternary; \
            meta.slot.age : ternary; \
        } \
        actions = { claim; merge; read; NoAction; } \
        const entries = { \
            (role_t.MANAGEMENT, _)           : read(); \
            (_,                 age_t.NEWER) : claim(); \
            (_,                 age_t.SAME)  : merge(); \
        } \
        const default_action = NoAction(); \
    }

// A lane is added once a child.
#define LANE_ACCESS(name, claim, add, read) \
    @hidden table name { \
        key = { \
            meta.role              : ternary; \
            meta.slot.age          : ternary; \
            meta.slot.own_bit_seen : ternary; \
        } \
        actions = { claim; add; read; NoAction; } \
        const entries = { \
            (role_t.MANAGEMENT, _,           _) : read(); \
            (_,                 age_t.NEWER, _) : claim(); \
            (_,                 age_t.SAME,  0) : add(); \
            (_,                 age_t.SAME,  _) : read(); \
        } \
        const default_action = NoAction(); \
    }

#endif
