// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Where do a tree's packets leave this switch? Up by one port, with the node's own child number; down by a multicast group.

control TreeRoutes(inout metadata_t meta) {

    action up(NEIGHBOR port_t port, child_t child) {
        meta.up_port = port;
        meta.up_child = child;
    }

    @id(2)
    table uplink {
        key = { meta.tree_index : exact @name("tree_index"); }
        actions = { up; @defaultonly NoAction; }
        const default_action = NoAction();
        size = TREES;
    }

    action down(@refers_to(builtin::multicast_group_table, multicast_group_id) group_t group) {
        meta.down_group = group;
    }

    @id(3)
    table downlink {
        key = { meta.tree_index : exact @name("tree_index"); }
        actions = { down; @defaultonly NoAction; }
        const default_action = NoAction();
        size = TREES;
    }

    apply {
        if (meta.role == role_t.INNER) {
            uplink.apply();
        } else if (meta.role == role_t.ROOT || meta.role == role_t.MULTICAST) {
            downlink.apply();
        }
    }
}
