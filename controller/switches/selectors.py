# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Converts ECMP sets to members and groups of the action profile of the table (P4Runtime spec 9.2.1 and 9.2.2), for
servers without one-shot action sets (9.2.3): Stratum on Tofino. Numbers of members and groups follow from the contents
alone, so that they can be compared with those that are read back."""

from __future__ import annotations

import zlib

from netfold.controller.switches.entries import (
    Action,
    Contents,
    Entity,
    SelectorGroup,
    SelectorMember,
    TableEntry,
    action,
    add,
    entry,
)

ROUTES = "ipv4_routes"


def expand_action_sets(contents: Contents) -> Contents:
    """The same contents, with each route as a member (one next hop) or a group of members (several)."""
    written: Contents = {}
    groups = _group_numbers(contents)
    for entity in contents.values():
        if not isinstance(entity, TableEntry) or entity.table != ROUTES:
            add(written, entity)
            continue
        members = _members(entity)
        for member, chosen in zip(members, entity.actions, strict=True):
            add(written, SelectorMember(member, chosen))
        if len(members) == 1:
            by = action("by_member", member=members[0])
        else:
            by = action("by_group", group=groups[members])
            add(written, SelectorGroup(groups[members], members))
        add(written, entry(entity.table, dict(entity.match), by, priority=entity.priority))
    return written


def _members(route: Entity) -> tuple[int, ...]:
    """The members of a route. The number of a member is its port."""
    assert isinstance(route, TableEntry)
    return tuple(sorted(_port(a) for a in route.actions))


def _port(chosen: Action) -> int:
    return dict(chosen.args)["port"]


def _group_numbers(contents: Contents) -> dict[tuple[int, ...], int]:
    """Numbers of sets; except for collisions the number of a set does not depend on other sets."""
    routes = (e for e in contents.values() if isinstance(e, TableEntry) and e.table == ROUTES)
    sets = sorted({_members(r) for r in routes if len(r.actions) > 1})
    numbers: dict[tuple[int, ...], int] = {}
    for members in sets:
        number = zlib.crc32(",".join(map(str, members)).encode()) & 0x7FFFFFFF or 1
        while number in numbers.values():
            number += 1
        numbers[members] = number
    return numbers
