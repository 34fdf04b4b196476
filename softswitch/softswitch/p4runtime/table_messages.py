# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Table entries, default entries, and the direct counters and meters that belong to them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from finsy.proto import p4i, p4r

from softswitch.errors import NotFoundError
from softswitch.p4runtime import keys
from softswitch.p4runtime.array_messages import (
    decode_counter,
    decode_meter,
    encode_counter,
    encode_meter,
)
from softswitch.p4runtime.change import Change
from softswitch.p4runtime.schema import Schema, Table
from softswitch.p4runtime.status import Code, StatusError, invalid
from softswitch.state.entities import (
    ActionCall,
    ActionSet,
    Match,
    MeterConfig,
    TableAction,
    TableEntry,
)
from softswitch.state.pipeline import Pipeline

_COOKIE_BYTES = 8


@dataclass(frozen=True)
class _Key:
    """Which entry of a table; `match` None stands for the default entry."""

    table: Table
    match: Mapping[str, Match] | None
    priority: int


def pack_metadata(cookie: int, metadata: bytes) -> bytes:
    """The two opaque values of an entry as the one that the switch keeps."""
    return cookie.to_bytes(_COOKIE_BYTES, "big") + metadata if cookie or metadata else b""


def unpack_metadata(packed: bytes) -> tuple[int, bytes]:
    """Back from `pack_metadata`."""
    return int.from_bytes(packed[:_COOKIE_BYTES], "big"), packed[_COOKIE_BYTES:]


class TableMessages:
    """Write and Read of TableEntry, DirectCounterEntry and DirectMeterEntry."""

    def __init__(self, schema: Schema, pipeline: Pipeline) -> None:
        self._schema = schema
        self._pipeline = pipeline
        self._default_metadata: dict[int, bytes] = {}
        """Metadata of the default entries that the controller has set, by table id."""

    # --- write ---

    def write(self, kind: Change, entry: p4r.TableEntry) -> None:
        """Carries out one update. Raises StatusError or SwitchError; nothing is half-applied."""
        key = self._key(entry)
        if kind is Change.DELETE:
            self._delete(key)
            return
        self._check_fields(key.table, entry)
        meter = (
            decode_meter(entry.meter_config, key.table.meter_type, key.table.name)
            if entry.HasField("meter_config")
            else None
        )
        if key.match is None:
            self._write_default(kind, key, entry)
        elif kind is Change.INSERT:
            self._insert(key, entry)
        else:
            self._modify(key, entry)
        self._write_direct(kind, key, entry, meter)

    def _key(self, entry: p4r.TableEntry) -> _Key:
        table = self._schema.tables[entry.table_id]
        if entry.is_default_action:
            if entry.match or entry.priority:
                raise invalid(f"table {table.name}: the default entry has neither match nor priority")
            return _Key(table, None, 0)
        if table.needs_priority and entry.priority <= 0:
            raise invalid(
                f"table {table.name}: priority {entry.priority}; a key of this kind needs one above 0"
            )
        if not table.needs_priority and entry.priority:
            raise invalid(
                f"table {table.name}: priority {entry.priority}; exact and lpm keys have none, set it to 0"
            )
        return _Key(table, keys.decode_match(table.fields, entry.match), entry.priority)

    def _check_fields(self, table: Table, entry: p4r.TableEntry) -> None:
        what = f"table {table.name}"
        if entry.is_const:
            raise invalid(f"{what}: is_const is for reading; a controller's entry cannot be constant")
        if entry.HasField("time_since_last_hit"):
            raise invalid(f"{what}: time_since_last_hit is for reading")
        if entry.idle_timeout_ns and (not table.idle_timeout or entry.is_default_action):
            raise invalid(
                f"{what}: idle timeouts are not supported here (support_timeout is not set, or default entry)"
            )
        if entry.idle_timeout_ns < 0:
            raise invalid(f"{what}: idle timeout {entry.idle_timeout_ns} ns is negative")
        if entry.HasField("counter_data") and not table.has_counter:
            raise invalid(f"{what}: it has no direct counter")
        if entry.HasField("meter_config") and table.meter_type is None:
            raise invalid(f"{what}: it has no direct meter")
        if entry.HasField("meter_counter_data"):
            raise StatusError(Code.UNIMPLEMENTED, f"{what}: meters have no counters per color here")

    def _delete(self, key: _Key) -> None:
        if key.match is None:
            raise invalid(f"table {key.table.name}: the default entry can only be modified")
        self._refuse_const(key.table)
        self._pipeline.table_delete(key.table.name, key.match, key.priority)

    def _insert(self, key: _Key, entry: p4r.TableEntry) -> None:
        if not len(key.table.fields):
            raise invalid(f"table {key.table.name} has no key: it has only a default entry")
        self._refuse_const(key.table)
        if not entry.HasField("action"):
            raise invalid(f"table {key.table.name}: an INSERT needs an action")
        self._pipeline.table_insert(key.table.name, self._entry(key, entry))

    def _modify(self, key: _Key, entry: p4r.TableEntry) -> None:
        assert key.match is not None
        if entry.HasField("action"):
            self._refuse_const(key.table)
            self._pipeline.table_modify(key.table.name, self._entry(key, entry))
        else:
            self._pipeline.table_entry(key.table.name, key.match, key.priority)

    def _refuse_const(self, table: Table) -> None:
        if table.is_const:
            raise StatusError(Code.PERMISSION_DENIED, f"table {table.name}: its entries are constant")

    def _entry(self, key: _Key, entry: p4r.TableEntry) -> TableEntry:
        assert key.match is not None
        action = self._action(key.table, entry.action, default=False)
        metadata = pack_metadata(entry.controller_metadata, entry.metadata)
        return TableEntry(key.match, action, key.priority, entry.idle_timeout_ns, metadata)

    def _action(self, table: Table, message: p4r.TableAction, *, default: bool) -> TableAction:
        action = keys.decode_table_action(self._schema, table, message)
        if isinstance(action, ActionCall):
            self._check_scope(table, self._schema.actions.named(action.name).id, default=default)
        elif table.profile is not None:
            self._check_style(table, isinstance(action, ActionSet))
        return action

    def _check_scope(self, table: Table, action_id: int, *, default: bool) -> None:
        scope = table.scopes[action_id]
        wrong = p4i.ActionRef.TABLE_ONLY if default else p4i.ActionRef.DEFAULT_ONLY
        if scope == wrong:
            place = "the default action" if default else "an entry's action"
            raise StatusError(
                Code.PERMISSION_DENIED,
                f"table {table.name}: {self._schema.actions[action_id].name} may not be {place}",
            )

    def _check_style(self, table: Table, one_shot: bool) -> None:
        """All tables of a selector are programmed either with action sets or with members and groups."""
        assert table.profile is not None
        for table_id in table.profile.tables:
            if table_id not in self._schema.tables:
                continue
            first = next(iter(self._pipeline.table_entries(self._schema.tables[table_id].name)), None)
            if first is not None and isinstance(first.action, ActionSet) != one_shot:
                raise invalid(
                    f"table {table.name}: {table.profile.name} is programmed "
                    f"{'with members and groups' if one_shot else 'with action sets'}; they cannot be mixed"
                )

    def _write_default(self, kind: Change, key: _Key, entry: p4r.TableEntry) -> None:
        table = key.table
        if kind is not Change.MODIFY:
            raise invalid(f"table {table.name}: the default entry can only be modified")
        if table.const_default or table.profile is not None:
            raise StatusError(Code.PERMISSION_DENIED, f"table {table.name}: its default action is constant")
        action = self._action(table, entry.action, default=True) if entry.HasField("action") else None
        self._pipeline.table_set_default(table.name, action)
        if action is None:
            self._default_metadata.pop(table.id, None)
        else:
            self._default_metadata[table.id] = pack_metadata(entry.controller_metadata, entry.metadata)

    def keeps_default(self, table_id: int) -> bool:
        """Is the table's default entry still that of the program?"""
        return table_id not in self._default_metadata

    def _write_direct(
        self, kind: Change, key: _Key, entry: p4r.TableEntry, meter: MeterConfig | None
    ) -> None:
        name = key.table.name
        if entry.HasField("counter_data"):
            self._pipeline.direct_counter_write(
                name, key.match, decode_counter(entry.counter_data), key.priority
            )
        if key.table.meter_type is not None and (meter is not None or kind is Change.MODIFY):
            self._pipeline.direct_meter_write(name, key.match, meter, key.priority)

    def write_counter(self, kind: Change, entry: p4r.DirectCounterEntry) -> None:
        """DirectCounterEntry: MODIFY only."""
        key = self._direct_key(kind, entry.table_entry, "direct counter")
        if not key.table.has_counter:
            raise invalid(f"table {key.table.name} has no direct counter")
        if entry.HasField("data"):
            data = decode_counter(entry.data)
            self._pipeline.direct_counter_write(key.table.name, key.match, data, key.priority)

    def write_meter(self, kind: Change, entry: p4r.DirectMeterEntry) -> None:
        """DirectMeterEntry: MODIFY only."""
        key = self._direct_key(kind, entry.table_entry, "direct meter")
        if key.table.meter_type is None:
            raise invalid(f"table {key.table.name} has no direct meter")
        if entry.HasField("counter_data"):
            raise StatusError(
                Code.UNIMPLEMENTED, f"table {key.table.name}: meters have no counters per color here"
            )
        meter = None
        if entry.HasField("config"):
            meter = decode_meter(entry.config, key.table.meter_type, key.table.name)
        self._pipeline.direct_meter_write(key.table.name, key.match, meter, key.priority)

    def _direct_key(self, kind: Change, entry: p4r.TableEntry, what: str) -> _Key:
        if kind is not Change.MODIFY:
            raise invalid(f"a {what} can only be modified: it is created and deleted with its table entry")
        return self._key(entry)

    # --- read ---

    def read(self, query: p4r.TableEntry) -> Iterator[p4r.Entity]:
        """The entries that a query selects (specification, wildcard reads of TableEntry)."""
        if query.table_id == 0 and query.match:
            raise invalid("a match without table_id: a wildcard read over all tables has no other filter")
        for table in self._schema.tables.select(query.table_id):
            if query.HasField("time_since_last_hit") and query.table_id and not table.idle_timeout:
                raise invalid(f"table {table.name}: idle timeouts are not supported by the table")
            if query.is_default_action:
                yield p4r.Entity(table_entry=self._encode_default(table, query))
                continue
            for entry in self._select(table, query):
                if not self._passes(entry, query):
                    continue
                # An entry may be deleted between its selection and the reading of its counter, in a long Read.
                with contextlib.suppress(NotFoundError):
                    message = self._encode(table, entry, query)
                    yield p4r.Entity(table_entry=message)

    def _select(self, table: Table, query: p4r.TableEntry) -> Iterator[TableEntry]:
        if not query.match:
            yield from self._pipeline.table_entries(table.name)
            return
        match = keys.decode_match(table.fields, query.match)
        if table.needs_priority and query.priority == 0:
            wanted = [m.SerializeToString() for m in keys.encode_match(table.fields, match)]
            for entry in self._pipeline.table_entries(table.name):
                if [m.SerializeToString() for m in keys.encode_match(table.fields, entry.match)] == wanted:
                    yield entry
            return
        try:
            yield self._pipeline.table_entry(table.name, match, query.priority)
        except NotFoundError:
            return

    def _passes(self, entry: TableEntry, query: p4r.TableEntry) -> bool:
        cookie, metadata = unpack_metadata(entry.metadata)
        if query.priority and entry.priority != query.priority:
            return False
        if query.controller_metadata and cookie != query.controller_metadata:
            return False
        if query.metadata and metadata != query.metadata:
            return False
        if query.action.HasField("action"):
            wanted = self._schema.actions[query.action.action.action_id].name
            return isinstance(entry.action, ActionCall) and entry.action.name == wanted
        return True

    def _encode(self, table: Table, entry: TableEntry, query: p4r.TableEntry) -> p4r.TableEntry:
        message = self.encode_key(table, entry)
        message.action.CopyFrom(keys.encode_table_action(self._schema, table, entry.action))
        message.is_const = entry.is_const
        if query.HasField("time_since_last_hit") and table.idle_timeout:
            idle = self._pipeline.table_idle_ns(table.name, entry.match, entry.priority)
            message.time_since_last_hit.elapsed_ns = idle
        self._add_direct(message, _Key(table, entry.match, entry.priority), query)
        return message

    def encode_key(self, table: Table, entry: TableEntry) -> p4r.TableEntry:
        """Encode the parts that identify an entry, with its opaque values and its timeout."""
        cookie, metadata = unpack_metadata(entry.metadata)
        return p4r.TableEntry(
            table_id=table.id,
            match=keys.encode_match(table.fields, entry.match),
            priority=entry.priority,
            controller_metadata=cookie,
            metadata=metadata,
            idle_timeout_ns=entry.idle_timeout_ns,
        )

    def _encode_default(self, table: Table, query: p4r.TableEntry) -> p4r.TableEntry:
        cookie, metadata = unpack_metadata(self._default_metadata.get(table.id, b""))
        message = p4r.TableEntry(
            table_id=table.id, is_default_action=True, controller_metadata=cookie, metadata=metadata
        )
        action = self._pipeline.table_default(table.name)
        if action is not None:
            message.action.CopyFrom(keys.encode_table_action(self._schema, table, action))
        self._add_direct(message, _Key(table, None, 0), query)
        return message

    def _add_direct(self, message: p4r.TableEntry, key: _Key, query: p4r.TableEntry) -> None:
        name = key.table.name
        if query.HasField("meter_counter_data"):
            raise StatusError(Code.UNIMPLEMENTED, f"table {name}: meters have no counters per color here")
        if query.HasField("counter_data") and key.table.has_counter:
            data = self._pipeline.direct_counter_read(name, key.match, key.priority)
            message.counter_data.CopyFrom(encode_counter(data))
        if query.HasField("meter_config") and key.table.meter_type is not None:
            config = self._pipeline.direct_meter_read(name, key.match, key.priority)
            if config is not None:
                message.meter_config.CopyFrom(encode_meter(config))

    def read_counter(self, query: p4r.DirectCounterEntry) -> Iterator[p4r.Entity]:
        """The direct counters that a query selects."""
        for key, entry in self._direct_entries(query.table_entry, lambda table: table.has_counter):
            with contextlib.suppress(NotFoundError):
                data = self._pipeline.direct_counter_read(key.table.name, key.match, key.priority)
                message = p4r.DirectCounterEntry(table_entry=entry, data=encode_counter(data))
                yield p4r.Entity(direct_counter_entry=message)

    def read_meter(self, query: p4r.DirectMeterEntry) -> Iterator[p4r.Entity]:
        """The direct meters that a query selects."""
        if query.HasField("counter_data"):
            raise StatusError(Code.UNIMPLEMENTED, "meters have no counters per color here")
        for key, entry in self._direct_entries(query.table_entry, lambda table: table.meter_type is not None):
            message = p4r.DirectMeterEntry(table_entry=entry)
            with contextlib.suppress(NotFoundError):
                config = self._pipeline.direct_meter_read(key.table.name, key.match, key.priority)
                if config is not None:
                    message.config.CopyFrom(encode_meter(config))
                yield p4r.Entity(direct_meter_entry=message)

    def _direct_entries(
        self, query: p4r.TableEntry, has: Callable[[Table], bool]
    ) -> Iterator[tuple[_Key, p4r.TableEntry]]:
        for table in self._schema.tables.select(query.table_id):
            if not has(table):
                if query.table_id:
                    raise invalid(f"table {table.name} has no such direct resource")
                continue
            if query.match or query.is_default_action:
                key = self._key(query)
                if key.match is not None:
                    self._pipeline.table_entry(table.name, key.match, key.priority)
                yield key, _key_only(query)
                continue
            for entry in self._pipeline.table_entries(table.name):
                if self._passes(entry, query):
                    yield _Key(table, entry.match, entry.priority), _key_only(self.encode_key(table, entry))


def _key_only(entry: p4r.TableEntry) -> p4r.TableEntry:
    return p4r.TableEntry(
        table_id=entry.table_id,
        match=entry.match,
        priority=entry.priority,
        is_default_action=entry.is_default_action,
    )
