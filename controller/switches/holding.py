# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What one switch holds, over a connection of P4Runtime: read back, and written step by step."""

from __future__ import annotations

import finsy as fy
from finsy.proto import p4r

from netfold.controller.switches.endpoint import Endpoint
from netfold.controller.switches.entries import Codec, Contents, Entity, UnknownEntityError
from netfold.controller.switches.install import Op, Step, apply, differences
from netfold.controller.switches.manners import read
from netfold.controller.switches.widths import widened


class ForeignStateError(Exception):
    """The switch holds what this store's controllers did not write: its pipeline has to be pushed again."""


class Holding:
    """`held` is what the switch holds, as far as is known. Raises fy.P4ClientError where the switch refuses."""

    def __init__(self, switch: fy.Switch, endpoint: Endpoint) -> None:
        self.held: Contents = {}
        self._switch = switch
        self._endpoint = endpoint
        self._codec = Codec(switch.p4info)

    @property
    def marked(self) -> bool:
        """It bears the mark of this store."""
        return self._endpoint.marker in self.held

    def lacks(self, wanted: Contents) -> int:
        """How many entries differ."""
        return differences(self.held, wanted)

    async def read(self) -> int:
        """How many entries differ from what was known. Raises ForeignStateError."""
        known, self.held = self.held, await self._read()
        return self.lacks(known)

    async def write(self, step: Step) -> None:
        encoded = [self._encode(e) for e in step.entities]
        if step.op is Op.INSERT:
            await self._switch.insert(encoded)
            groups = [e for e in encoded if e.HasField("packet_replication_engine_entry")]
            if groups:
                # BMv2 keeps its groups over a push of a pipeline, while its server forgets them: they cannot be read,
                # and a group made anew adds its copies to theirs. Only taking it away empties it.
                await self._switch.delete(groups)
                await self._switch.insert(groups)
        elif step.op is Op.MODIFY:
            await self._switch.modify(encoded)
        else:
            await self._switch.delete(encoded, strict=False)
        apply(self.held, step)

    async def _read(self) -> Contents:
        held: Contents = {}
        try:
            for kind in self._codec.reads(one_shot=self._endpoint.one_shot):
                async for entity in read(self._switch, [kind]):
                    decoded = self._codec.decode(entity)
                    if decoded is not None:
                        held[decoded.key] = decoded
        except UnknownEntityError as error:
            raise ForeignStateError(str(error)) from error
        return held

    def _encode(self, entity: Entity) -> p4r.Entity:
        encoded = self._codec.encode(entity).encode(self._switch.p4info)
        return widened(encoded, self._switch.p4info) if self._endpoint.full_width else encoded
