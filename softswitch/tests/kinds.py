# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""P4Runtime entities of the program `kinds.p4`, by name."""

from __future__ import annotations

import functools
from typing import Any

from finsy.proto import p4r
from google.protobuf import text_format
from running import PROGRAMS
from softswitch.state.values import encode


@functools.cache
def config(name: str = "kinds") -> p4r.ForwardingPipelineConfig:
    made = p4r.ForwardingPipelineConfig(p4_device_config=(PROGRAMS / f"{name}.json").read_bytes())
    text_format.Parse((PROGRAMS / f"{name}.p4info.txtpb").read_text(), made.p4info)
    made.cookie.cookie = 42
    return made


@functools.cache
def ids(name: str = "kinds") -> dict[str, int]:
    """Ids by alias, of all kinds of objects."""
    info = config(name).p4info
    lists: list[Any] = [
        *(info.tables, info.actions, info.action_profiles, info.counters, info.direct_counters, info.meters),
        *(info.direct_meters, info.registers, info.value_sets, info.digests),
    ]
    return {item.preamble.alias: item.preamble.id for items in lists for item in items}


def exact(field: int, value: int | bytes) -> p4r.FieldMatch:
    data = value if isinstance(value, bytes) else encode(value)
    return p4r.FieldMatch(field_id=field, exact=p4r.FieldMatch.Exact(value=data))


def lpm(field: int, value: int, prefix: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, lpm=p4r.FieldMatch.LPM(value=encode(value), prefix_len=prefix))


def ternary(field: int, value: int, mask: int) -> p4r.FieldMatch:
    message = p4r.FieldMatch.Ternary(value=encode(value), mask=encode(mask))
    return p4r.FieldMatch(field_id=field, ternary=message)


def between(field: int, low: int, high: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, range=p4r.FieldMatch.Range(low=encode(low), high=encode(high)))


def optional(field: int, value: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, optional=p4r.FieldMatch.Optional(value=encode(value)))


def action(name: str, *values: int | bytes) -> p4r.Action:
    made = p4r.Action(action_id=ids()[name])
    for number, value in enumerate(values, 1):
        made.params.add(param_id=number, value=value if isinstance(value, bytes) else encode(value))
    return made


def entry(table: str, *match: p4r.FieldMatch, act: p4r.Action | None = None, **fields: Any) -> p4r.Entity:
    made = p4r.TableEntry(table_id=ids()[table] if table else 0, match=match, **fields)
    if act is not None:
        made.action.action.CopyFrom(act)
    return p4r.Entity(table_entry=made)


def forward(dst: int, port: int = 2, **fields: Any) -> p4r.Entity:
    return entry("forward", exact(1, dst), act=action("send", port), **fields)


def member(number: int, port: int = 1, profile: str = "spread") -> p4r.Entity:
    made = p4r.ActionProfileMember(
        action_profile_id=ids()[profile], member_id=number, action=action("set_port", port)
    )
    return p4r.Entity(action_profile_member=made)


def group(
    number: int, *members: int, max_size: int = 8, weight: int = 1, profile: str = "spread"
) -> p4r.Entity:
    made = p4r.ActionProfileGroup(action_profile_id=ids()[profile], group_id=number, max_size=max_size)
    for member_id in members:
        made.members.add(member_id=member_id, weight=weight)
    return p4r.Entity(action_profile_group=made)


def replicas(*pairs: tuple[int, int]) -> list[p4r.Replica]:
    return [p4r.Replica(port=encode(port), instance=instance) for port, instance in pairs]


def multicast(number: int, *pairs: tuple[int, int], metadata: bytes = b"") -> p4r.Entity:
    made = p4r.Entity()
    made.packet_replication_engine_entry.multicast_group_entry.CopyFrom(
        p4r.MulticastGroupEntry(multicast_group_id=number, replicas=replicas(*pairs), metadata=metadata)
    )
    return made


def clone(number: int, *pairs: tuple[int, int], length: int = 0, cos: int = 0) -> p4r.Entity:
    made = p4r.Entity()
    made.packet_replication_engine_entry.clone_session_entry.CopyFrom(
        p4r.CloneSessionEntry(
            session_id=number, replicas=replicas(*pairs), packet_length_bytes=length, class_of_service=cos
        )
    )
    return made


def register(name: str, index: int | None = None, data: bytes | None = None) -> p4r.Entity:
    made = p4r.RegisterEntry(register_id=ids()[name] if name else 0)
    if index is not None:
        made.index.index = index
    if data is not None:
        made.data.bitstring = data
    return p4r.Entity(register_entry=made)


def counter(name: str, index: int | None = None, packets: int | None = None, octets: int = 0) -> p4r.Entity:
    made = p4r.CounterEntry(counter_id=ids()[name] if name else 0)
    if index is not None:
        made.index.index = index
    if packets is not None:
        made.data.CopyFrom(p4r.CounterData(packet_count=packets, byte_count=octets))
    return p4r.Entity(counter_entry=made)


def meter(name: str, index: int | None = None, rates: tuple[int, int, int, int] | None = None) -> p4r.Entity:
    made = p4r.MeterEntry(meter_id=ids()[name] if name else 0)
    if index is not None:
        made.index.index = index
    if rates is not None:
        made.config.CopyFrom(meter_config(*rates))
    return p4r.Entity(meter_entry=made)


def meter_config(cir: int, cburst: int, pir: int, pburst: int) -> p4r.MeterConfig:
    return p4r.MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)


def value_set(*values: int) -> p4r.Entity:
    made = p4r.ValueSetEntry(value_set_id=ids()["tagged_types"])
    for value in values:
        made.members.add(match=[exact(1, value)])
    return p4r.Entity(value_set_entry=made)


def digest(max_timeout_ns: int = 0, max_list_size: int = 1, ack_timeout_ns: int = 0) -> p4r.Entity:
    made = p4r.DigestEntry(digest_id=ids()["seen_t"])
    made.config.CopyFrom(
        p4r.DigestEntry.Config(
            max_timeout_ns=max_timeout_ns, max_list_size=max_list_size, ack_timeout_ns=ack_timeout_ns
        )
    )
    return p4r.Entity(digest_entry=made)
