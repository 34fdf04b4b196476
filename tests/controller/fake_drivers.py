# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N802
"""A fake switch with the manners of the P4Runtime server in Tofino's drivers: its device is 0, it takes numbers at the
full width of their field only, in entries and packets, no priority from 2^24 on, and it tells no capabilities."""

from __future__ import annotations

from pathlib import Path

import grpc
from finsy.proto import p4r, rpc_code

from netfold.controller.switches.finsy_adapter import read_schema
from netfold.controller.switches.server_forms import pad_packet_to_width, pad_to_width
from tests.controller.fake_switch import FakeSwitch

PRIORITIES = 1 << 24


class FakeDrivers(FakeSwitch):
    """`narrow` are the packets that came with numbers too short, of which it makes nothing."""

    def __init__(self, p4info: Path) -> None:
        super().__init__(device_id=0)
        self.narrow: list[p4r.PacketOut] = []
        self._schema = read_schema(p4info)

    async def Capabilities(self, request, context):
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no capabilities are told")

    async def Write(self, request, context):
        await self._check_device(request, context)
        return await super().Write(request, context)

    async def Read(self, request, context):
        await self._check_device(request, context)
        async for answer in super().Read(request, context):
            yield answer

    async def _check_device(self, request, context) -> None:
        if request.device_id != 0:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"device {request.device_id}")

    async def _pump(self, requests, client) -> None:
        carried = self.on_packet_out

        def look(packet: p4r.PacketOut) -> None:
            asked = p4r.StreamMessageRequest(packet=packet)
            wide = pad_packet_to_width(
                p4r.StreamMessageRequest.FromString(asked.SerializeToString()), self._schema
            )
            if wide == asked:
                carried(packet)
            else:
                self.narrow.append(packet)

        self.on_packet_out = look
        try:
            await super()._pump(requests, client)
        finally:
            self.on_packet_out = carried

    def _update(self, update: p4r.Update) -> p4r.Error:
        wide = pad_to_width(p4r.Entity.FromString(update.entity.SerializeToString()), self._schema)
        if wide != update.entity:
            return _refusal("a number has not the width of its field")
        if update.entity.table_entry.priority >= PRIORITIES:
            return _refusal("the priority is 2^24 or more")
        return super()._update(update)


def _refusal(message: str) -> p4r.Error:
    return p4r.Error(canonical_code=rpc_code.INVALID_ARGUMENT, message=message, space="fake")
