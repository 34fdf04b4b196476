# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The contents of one switch as read over P4Runtime, and the writes that change them."""

from __future__ import annotations

from finsy.proto import p4r

from netfold.controller.switches.endpoint import Endpoint
from netfold.controller.switches.entries import Codec, Contents, Entity, UnknownEntityError
from netfold.controller.switches.finsy_adapter import TimeoutSwitch
from netfold.controller.switches.install import Op, WriteBatch, apply, count_differences
from netfold.controller.switches.widths import pad_to_width


class ForeignStateError(Exception):
    """The switch has contents that no controller of this store wrote: its pipeline has to be pushed again."""


class InstalledState:
    """`contents` are those of the switch, as far as is known. Raises fy.P4ClientError where the switch refuses."""

    def __init__(self, switch: TimeoutSwitch, endpoint: Endpoint) -> None:
        self.contents: Contents = {}
        self._switch = switch
        self._endpoint = endpoint
        self._codec = Codec(switch.p4info)

    @property
    def has_store_marker(self) -> bool:
        """A controller of this store wrote the contents."""
        return self._endpoint.marker in self.contents

    def count_differences(self, desired: Contents) -> int:
        """The number of entries that differ."""
        return count_differences(self.contents, desired)

    async def read(self) -> int:
        """Returns how many entries differ from what was known. Raises ForeignStateError."""
        known, self.contents = self.contents, await self._read()
        return self.count_differences(known)

    async def write(self, batch: WriteBatch) -> None:
        encoded = [self._encode(e) for e in batch.entities]
        async with self._switch.rpc_lock:
            await self._write(batch.op, encoded)
        apply(self.contents, batch)

    async def _write(self, op: Op, encoded: list[p4r.Entity]) -> None:
        if op is Op.MODIFY:
            await self._switch.modify(encoded)
            return
        if op is Op.DELETE:
            await self._switch.delete(encoded, strict=False)
            return
        await self._switch.insert(encoded)
        groups = [e for e in encoded if e.HasField("packet_replication_engine_entry")]
        if groups:
            # BMv2 keeps its multicast groups over a pipeline push, but its server forgets them: they cannot be read,
            # and a group that is inserted again adds its copies to the old ones. Deleting the group empties it.
            await self._switch.delete(groups)
            await self._switch.insert(groups)

    async def _read(self) -> Contents:
        contents: Contents = {}
        try:
            for kind in self._codec.reads(one_shot=self._endpoint.one_shot):
                async with self._switch.rpc_lock:
                    async for entity in self._switch.read_entities([kind]):
                        decoded = self._codec.decode(entity)
                        if decoded is not None:
                            contents[decoded.key] = decoded
        except UnknownEntityError as error:
            raise ForeignStateError(str(error)) from error
        return contents

    def _encode(self, entity: Entity) -> p4r.Entity:
        encoded = self._codec.encode(entity).encode(self._switch.p4info)
        return pad_to_width(encoded, self._switch.p4info) if self._endpoint.full_width else encoded
