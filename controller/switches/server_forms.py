# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Converts contents to the forms that some P4Runtime servers need: ECMP sets as members and groups, and numbers of the
full width of their field.

Stratum on Tofino has no one-shot action sets (P4Runtime spec 9.2.3). It takes ECMP sets as members and groups of the
action profile of the table (9.2.1 and 9.2.2). Their numbers follow from the contents alone, so that they can be
compared with those that are read back.

P4Runtime (spec 8.4) has numbers without leading zeros, but p4lang/PI before its revision b2760a8, which Tofino's
drivers use, accepts no shorter ones than the field. Answers need no conversion.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import finsy as fy
from finsy.proto import p4r

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


def pad_to_width(entity: p4r.Entity, schema: fy.P4Schema) -> p4r.Entity:
    """Change the entity in place and return it."""
    if entity.HasField("table_entry"):
        entry = entity.table_entry
        widths = {field.id: field.bitwidth for field in schema.tables[entry.table_id].match_fields}
        for match in entry.match:
            kind = match.WhichOneof("field_match_type")
            assert kind is not None
            value = getattr(match, kind)
            for part in ("value", "mask"):
                if part in value.DESCRIPTOR.fields_by_name:
                    setattr(value, part, _padded(getattr(value, part), widths[match.field_id]))
        calls = list(_calls(entry.action))
    elif entity.HasField("action_profile_member"):
        calls = [entity.action_profile_member.action]
    else:
        calls = []
    for call in calls:
        params = {param.id: param.bitwidth for param in schema.actions[call.action_id].params}
        for param in call.params:
            param.value = _padded(param.value, params[param.param_id])
    return entity


def pad_packet_to_width(request: p4r.StreamMessageRequest, schema: fy.P4Schema) -> p4r.StreamMessageRequest:
    """Change the metadata of the packet-out in place and return it."""
    fields = schema.controller_packet_metadata["packet_out"].metadata
    for field in request.packet.metadata:
        field.value = _padded(field.value, fields[field.metadata_id].bitwidth)
    return request


def _calls(chosen: p4r.TableAction) -> Iterator[p4r.Action]:
    """The actions of an entry; none for a member or a group, which have their own."""
    if chosen.HasField("action"):
        yield chosen.action
    for weighted in chosen.action_profile_action_set.action_profile_actions:
        yield weighted.action


def _padded(value: bytes, bits: int) -> bytes:
    return value.rjust((bits + 7) // 8, b"\0")
