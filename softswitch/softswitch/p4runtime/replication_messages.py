# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The packet replication engine: multicast groups and clone sessions. And parser value sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from finsy.proto import p4r

from softswitch.p4runtime import keys
from softswitch.p4runtime.change import Change
from softswitch.p4runtime.schema import Schema
from softswitch.p4runtime.status import Code, StatusError, invalid
from softswitch.state import values
from softswitch.state.entities import CloneSession, Replica
from softswitch.state.pipeline import Pipeline

_PORT_BITS = 32


def _decode_replicas(messages: Iterable[p4r.Replica], what: str) -> tuple[Replica, ...]:
    return tuple(_decode_replica(message, what) for message in messages)


def _decode_replica(message: p4r.Replica, what: str) -> Replica:
    if message.backup_replicas:
        raise StatusError(Code.UNIMPLEMENTED, f"{what}: backup replicas are not supported")
    form = message.WhichOneof("port_kind")
    if form == "egress_port":
        return Replica(message.egress_port, message.instance)
    return Replica(values.decode(message.port, _PORT_BITS, f"{what}, port"), message.instance)


def _encode_replicas(replicas: Iterable[Replica]) -> list[p4r.Replica]:
    return [p4r.Replica(port=values.encode(r.port), instance=r.instance) for r in replicas]


class ReplicationMessages:
    """Write and Read of PacketReplicationEngineEntry."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._metadata: dict[int, bytes] = {}

    def write(self, kind: Change, message: p4r.PacketReplicationEngineEntry) -> None:
        """One update of a group or a session."""
        form = message.WhichOneof("type")
        if form == "multicast_group_entry":
            self._write_group(kind, message.multicast_group_entry)
        elif form == "clone_session_entry":
            self._write_session(kind, message.clone_session_entry)
        else:
            raise invalid("a packet replication entry is neither a multicast group nor a clone session")

    def _write_group(self, kind: Change, message: p4r.MulticastGroupEntry) -> None:
        group_id = message.multicast_group_id
        what = f"multicast group {group_id}"
        if group_id == 0:
            raise invalid(f"{what}: 0 is the wildcard, not an id")
        if kind is Change.DELETE:
            self._pipeline.multicast_delete(group_id)
            self._metadata.pop(group_id, None)
            return
        replicas = _decode_replicas(message.replicas, what)
        if kind is Change.INSERT:
            self._pipeline.multicast_insert(group_id, replicas)
        else:
            self._pipeline.multicast_modify(group_id, replicas)
        self._metadata[group_id] = message.metadata

    def _write_session(self, kind: Change, message: p4r.CloneSessionEntry) -> None:
        what = f"clone session {message.session_id}"
        if message.session_id == 0:
            raise invalid(f"{what}: 0 is the wildcard, not an id")
        if kind is Change.DELETE:
            self._pipeline.clone_delete(message.session_id)
            return
        session = CloneSession(
            message.session_id,
            _decode_replicas(message.replicas, what),
            message.class_of_service,
            message.packet_length_bytes,
        )
        if kind is Change.INSERT:
            self._pipeline.clone_insert(session)
        else:
            self._pipeline.clone_modify(session)

    def read(self, query: p4r.PacketReplicationEngineEntry) -> Iterator[p4r.Entity]:
        """The groups or sessions that a query selects; an unset query selects both kinds."""
        form = query.WhichOneof("type")
        if form in (None, "multicast_group_entry"):
            yield from self._read_groups(query.multicast_group_entry.multicast_group_id)
        if form in (None, "clone_session_entry"):
            yield from self._read_sessions(query.clone_session_entry.session_id)

    def _read_groups(self, wanted: int) -> Iterator[p4r.Entity]:
        for group_id, replicas in self._pipeline.multicast_groups().items():
            if wanted in (0, group_id):
                entity = p4r.Entity()
                group = entity.packet_replication_engine_entry.multicast_group_entry
                group.multicast_group_id = group_id
                group.replicas.extend(_encode_replicas(replicas))
                group.metadata = self._metadata.get(group_id, b"")
                yield entity

    def _read_sessions(self, wanted: int) -> Iterator[p4r.Entity]:
        for session_id, session in self._pipeline.clone_sessions().items():
            if wanted in (0, session_id):
                entity = p4r.Entity()
                message = entity.packet_replication_engine_entry.clone_session_entry
                message.session_id = session_id
                message.replicas.extend(_encode_replicas(session.replicas))
                message.class_of_service = session.class_of_service
                message.packet_length_bytes = session.packet_length
                yield entity


class ValueSetMessages:
    """Write and Read of ValueSetEntry."""

    def __init__(self, schema: Schema, pipeline: Pipeline) -> None:
        self._schema = schema
        self._pipeline = pipeline

    def write(self, kind: Change, message: p4r.ValueSetEntry) -> None:
        """Replaces the members of a value set."""
        value_set = self._schema.value_sets[message.value_set_id]
        what = f"value set {value_set.name}"
        if kind is not Change.MODIFY:
            raise invalid(f"{what} can only be modified: it is always there")
        fields = value_set.fields.select(0)
        members = []
        for member in message.members:
            match = keys.decode_match(value_set.fields, member.match)
            if missing := [field.name for field in fields if field.name not in match]:
                raise StatusError(
                    Code.UNIMPLEMENTED, f"{what}: a member without {', '.join(missing)} is not supported"
                )
            decoded = tuple(match[field.name] for field in fields)
            if decoded in members:
                raise StatusError(Code.ALREADY_EXISTS, f"{what}: a member is given twice")
            members.append(decoded)
        self._pipeline.value_set_write(value_set.name, members)

    def read(self, query: p4r.ValueSetEntry) -> Iterator[p4r.Entity]:
        """The value sets that a query selects."""
        for value_set in self._schema.value_sets.select(query.value_set_id):
            message = p4r.ValueSetEntry(value_set_id=value_set.id)
            names = [field.name for field in value_set.fields.select(0)]
            for member in self._pipeline.value_set_read(value_set.name):
                match = dict(zip(names, member, strict=True))
                message.members.add(match=keys.encode_match(value_set.fields, match))
            yield p4r.Entity(value_set_entry=message)
