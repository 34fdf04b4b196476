# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The forwarding state of one loaded program, as P4Runtime's entities."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from softswitch.errors import SwitchError
from softswitch.p4runtime.array_messages import ArrayMessages
from softswitch.p4runtime.change import Change
from softswitch.p4runtime.digests import Digests
from softswitch.p4runtime.profile_messages import ProfileMessages
from softswitch.p4runtime.replication_messages import ReplicationMessages, ValueSetMessages
from softswitch.p4runtime.schema import Schema
from softswitch.p4runtime.status import Code, StatusError, from_switch, invalid
from softswitch.p4runtime.table_messages import TableMessages
from softswitch.state.pipeline import Pipeline


class Forwarding:
    """Carries out updates and queries on one pipeline."""

    def __init__(self, schema: Schema, pipeline: Pipeline) -> None:
        self.schema = schema
        self.pipeline = pipeline
        self.tables = TableMessages(schema, pipeline)
        self.digests = Digests(schema, pipeline)
        self._profiles = ProfileMessages(schema, pipeline)
        self._arrays = ArrayMessages(schema, pipeline)
        self._replication = ReplicationMessages(pipeline)
        self._value_sets = ValueSetMessages(schema, pipeline)

    def write(self, update: p4r.Update) -> None:
        """One update. Raises StatusError; then nothing has changed."""
        if update.type == p4r.Update.UNSPECIFIED:
            raise invalid("the update's type is not set")
        try:
            change = Change(update.type)
        except ValueError:
            raise invalid(f"the update's type {update.type} is unknown") from None
        try:
            self._write(change, update.entity)
        except SwitchError as error:
            raise from_switch(error) from error

    def _write(self, change: Change, entity: p4r.Entity) -> None:
        match entity.WhichOneof("entity"):
            case "table_entry":
                self.tables.write(change, entity.table_entry)
            case "direct_counter_entry":
                self.tables.write_counter(change, entity.direct_counter_entry)
            case "direct_meter_entry":
                self.tables.write_meter(change, entity.direct_meter_entry)
            case "action_profile_member":
                self._profiles.write_member(change, entity.action_profile_member)
            case "action_profile_group":
                self._profiles.write_group(change, entity.action_profile_group)
            case "counter_entry":
                self._arrays.write_counter(change, entity.counter_entry)
            case "meter_entry":
                self._arrays.write_meter(change, entity.meter_entry)
            case "register_entry":
                self._arrays.write_register(change, entity.register_entry)
            case "packet_replication_engine_entry":
                self._replication.write(change, entity.packet_replication_engine_entry)
            case "value_set_entry":
                self._value_sets.write(change, entity.value_set_entry)
            case "digest_entry":
                self.digests.write(change, entity.digest_entry)
            case None:
                raise invalid("the update has no entity")
            case other:
                raise StatusError(Code.UNIMPLEMENTED, f"{other}: v1model has no such externs")

    def read(self, query: p4r.Entity) -> Iterator[p4r.Entity]:
        """Read the entities that a query selects. Raises StatusError, possibly after some entities."""
        try:
            yield from self._read(query)
        except SwitchError as error:
            raise from_switch(error) from error

    def _read(self, query: p4r.Entity) -> Iterator[p4r.Entity]:
        match query.WhichOneof("entity"):
            case "table_entry":
                return self.tables.read(query.table_entry)
            case "direct_counter_entry":
                return self.tables.read_counter(query.direct_counter_entry)
            case "direct_meter_entry":
                return self.tables.read_meter(query.direct_meter_entry)
            case "action_profile_member":
                return self._profiles.read_members(query.action_profile_member)
            case "action_profile_group":
                return self._profiles.read_groups(query.action_profile_group)
            case "counter_entry":
                return self._arrays.read_counter(query.counter_entry)
            case "meter_entry":
                return self._arrays.read_meter(query.meter_entry)
            case "register_entry":
                return self._arrays.read_register(query.register_entry)
            case "packet_replication_engine_entry":
                return self._replication.read(query.packet_replication_engine_entry)
            case "value_set_entry":
                return self._value_sets.read(query.value_set_entry)
            case "digest_entry":
                return self.digests.read(query.digest_entry)
            case "extern_entry":
                return iter(())
            case _:
                raise invalid("the query has no entity; there is no wildcard over kinds")

    def copy_to(self, new: Forwarding) -> None:
        """Carries the state over to a changed program. Raises StatusError when a part of it has no place there;
        then `new` is not fit for use, and this one is unchanged."""
        for query in _CONFIGURATION:
            for entity in self.read(query):
                if not self._is_given(entity):
                    new.write(p4r.Update(type=_change(entity), entity=entity))
        self._arrays.copy_to(new._arrays)

    def _is_given(self, entity: p4r.Entity) -> bool:
        """Does the program have this entry by itself?"""
        if entity.WhichOneof("entity") != "table_entry":
            return False
        entry = entity.table_entry
        return entry.is_const or (entry.is_default_action and self.tables.keeps_default(entry.table_id))


def _configuration() -> tuple[p4r.Entity, ...]:
    # Members come before the groups that hold them, and both before the entries that refer to them.
    queries = [p4r.Entity(action_profile_member=p4r.ActionProfileMember())]
    queries.append(p4r.Entity(action_profile_group=p4r.ActionProfileGroup()))
    entry = p4r.TableEntry()
    entry.meter_config.SetInParent()
    entry.counter_data.SetInParent()
    queries.append(p4r.Entity(table_entry=entry))
    default = p4r.TableEntry(is_default_action=True)
    default.meter_config.SetInParent()
    default.counter_data.SetInParent()
    queries.append(p4r.Entity(table_entry=default))
    queries.append(p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()))
    queries.append(p4r.Entity(value_set_entry=p4r.ValueSetEntry()))
    queries.append(p4r.Entity(digest_entry=p4r.DigestEntry()))
    return tuple(queries)


_CONFIGURATION = _configuration()


def _change(entity: p4r.Entity) -> p4r.Update.Type.ValueType:
    """Type of the update that writes this entity to a fresh program."""
    kind = entity.WhichOneof("entity")
    there = kind == "value_set_entry" or (kind == "table_entry" and entity.table_entry.is_default_action)
    return p4r.Update.MODIFY if there else p4r.Update.INSERT
