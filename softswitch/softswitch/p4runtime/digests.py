# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Digests of the data plane, collected into lists (specification, DigestEntry)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from finsy.proto import p4r

from softswitch.p4runtime.change import Change
from softswitch.p4runtime.p4data import P4DataCodec
from softswitch.p4runtime.schema import Array, Schema
from softswitch.p4runtime.status import Code, StatusError, invalid
from softswitch.state.entities import DigestEvent
from softswitch.state.pipeline import Pipeline

# Largest list, also without a bound of the controller: gRPC messages have one.
LIST_MAX = 1024
# Lists stored without an ack; beyond, the oldest counts as lost, and its messages may be sent again.
UNACKNOWLEDGED_MAX = 256

Fields = tuple[bytes, ...]


@dataclass
class _Enabled:
    digest: Array
    config: p4r.DigestEntry.Config
    buffer: dict[Fields, None] = field(default_factory=dict)
    """Distinct messages not sent yet, in the order of arrival."""
    buffered_ns: int = 0
    """Time at which the first of them arrived."""
    next_list: int = 1
    unacknowledged: dict[int, tuple[int, tuple[Fields, ...]]] = field(default_factory=dict)
    """Time and messages of each list that was sent, by list id, oldest first."""
    held: set[Fields] = field(default_factory=set)
    """The messages in those lists: no two lists have one in common."""

    def forget(self, list_id: int) -> None:
        _, messages = self.unacknowledged.pop(list_id, (0, ()))
        self.held.difference_update(messages)

    @property
    def list_size(self) -> int:
        return min(self.config.max_list_size or LIST_MAX, LIST_MAX) if self.config.max_timeout_ns else 1


class Digests:
    """Write and Read of DigestEntry, and the lists to send. Times are nanoseconds of a monotonic clock."""

    def __init__(self, schema: Schema, pipeline: Pipeline) -> None:
        self._schema = schema
        self._pipeline = pipeline
        self._codec = P4DataCodec(schema.types)
        self._enabled: dict[str, _Enabled] = {}

    def write(self, kind: Change, message: p4r.DigestEntry) -> None:
        """Enables, configures or disables a digest."""
        digest = self._schema.digests[message.digest_id]
        what = f"digest {digest.name}"
        enabled = self._enabled.get(digest.name)
        if kind is Change.INSERT and enabled is not None:
            raise StatusError(Code.ALREADY_EXISTS, f"{what} is enabled already")
        if kind is not Change.INSERT and enabled is None:
            raise StatusError(Code.NOT_FOUND, f"{what} is not enabled")
        config = message.config
        if (
            kind is not Change.DELETE
            and min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0
        ):
            raise invalid(f"{what}: timeouts and list size cannot be negative")
        if kind is Change.DELETE:
            del self._enabled[digest.name]
        elif enabled is None:
            self._enabled[digest.name] = _Enabled(digest, config)
        else:
            enabled.config = config
        self._pipeline.digest_enable(digest.name, kind is not Change.DELETE)

    def read(self, query: p4r.DigestEntry) -> Iterator[p4r.Entity]:
        """The enabled digests that a query selects."""
        for digest in self._schema.digests.select(query.digest_id):
            if (enabled := self._enabled.get(digest.name)) is not None:
                yield p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=digest.id, config=enabled.config))

    def add(self, event: DigestEvent, now_ns: int) -> None:
        """Buffers one message of the data plane, unless it waits or is unacknowledged already."""
        enabled = self._enabled.get(event.name)
        if enabled is None:
            return
        self._forget_old(enabled, now_ns)
        if event.fields in enabled.held or event.fields in enabled.buffer:
            return
        if not enabled.buffer:
            enabled.buffered_ns = now_ns
        enabled.buffer[event.fields] = None

    def acknowledge(self, message: p4r.DigestListAck) -> None:
        """The controller has acted on a list. Raises StatusError for a digest that the program does not have."""
        digest = self._schema.digests[message.digest_id]
        if (enabled := self._enabled.get(digest.name)) is not None:
            enabled.forget(message.list_id)

    def due(self, now_ns: int) -> list[p4r.DigestList]:
        """The lists to send now."""
        lists = []
        for enabled in self._enabled.values():
            while len(enabled.buffer) >= enabled.list_size:
                lists.append(self._take(enabled, enabled.list_size, now_ns))
            if enabled.buffer and now_ns >= enabled.buffered_ns + enabled.config.max_timeout_ns:
                lists.append(self._take(enabled, len(enabled.buffer), now_ns))
        return lists

    def next_due_ns(self) -> int | None:
        """Time at which `due` has its next list, if no message arrives before."""
        times = [e.buffered_ns + e.config.max_timeout_ns for e in self._enabled.values() if e.buffer]
        return min(times, default=None)

    def _take(self, enabled: _Enabled, count: int, now_ns: int) -> p4r.DigestList:
        taken = list(itertools.islice(enabled.buffer, count))
        for fields in taken:
            del enabled.buffer[fields]
        enabled.buffered_ns = now_ns
        message = p4r.DigestList(digest_id=enabled.digest.id, list_id=enabled.next_list, timestamp=now_ns)
        assert enabled.digest.type_spec is not None
        message.data.extend(self._codec.encode_fields(enabled.digest.type_spec, fields) for fields in taken)
        if enabled.config.ack_timeout_ns:
            if len(enabled.unacknowledged) >= UNACKNOWLEDGED_MAX:
                enabled.forget(next(iter(enabled.unacknowledged)))
            enabled.unacknowledged[enabled.next_list] = (now_ns, tuple(taken))
            enabled.held.update(taken)
        enabled.next_list += 1
        return message

    def _forget_old(self, enabled: _Enabled, now_ns: int) -> None:
        oldest = now_ns - enabled.config.ack_timeout_ns
        while enabled.unacknowledged:
            list_id, (sent_ns, _) = next(iter(enabled.unacknowledged.items()))
            if sent_ns > oldest:
                return
            enabled.forget(list_id)
