# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""finsy in the terms of a session. All use of finsy's internals is in this file.

finsy ends every RPC after 10 s, also a pipeline push, and offers no option for it. So `TimeoutSwitch` replaces the
client that finsy makes (`Switch._p4client`, in the hook `Switch._switch_start`) by a subclass, whose stub
(`P4Client._stub`) passes timeouts of its own. And finsy's `read` makes objects of its own of each entity, at ten times
the cost of the RPC: `read_responses` returns the responses as they are. Nothing of finsy is patched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import finsy as fy
from finsy.p4client import P4Client
from finsy.proto import p4r

from netfold.controller.switches.endpoint import Tls

_PUSH = "SetForwardingPipelineConfig"


@dataclass(frozen=True)
class CallTimeouts:
    """Seconds for a pipeline push, and for any other RPC."""

    push_s: float
    call_s: float


class TimeoutSwitch(fy.Switch):  # type: ignore[misc]  # final for type checkers; finsy offers no other way
    """`rpc_lock`: held for each RPC on the switch's contents, so that one of them does not delay another one into its
    timeout."""

    def __init__(self, name: str, address: str, options: fy.SwitchOptions, timeouts: CallTimeouts) -> None:
        super().__init__(name, address, options)
        self._timeouts = timeouts
        self.rpc_lock = asyncio.Lock()

    def _switch_start(self) -> None:
        """finsy calls this after it has made its client."""
        credentials = self.options.channel_credentials
        self._p4client = _TimeoutClient(self.address, credentials, wait_for_ready=False)
        self._p4client.timeouts = self._timeouts
        super()._switch_start()  # type: ignore[no-untyped-call]

    def read_entities(self, wanted: Sequence[fy.p4entity.P4Entity]) -> AsyncIterator[object]:
        # finsy's overloads declare its async generator as a coroutine
        return cast(AsyncIterator[object], self.read(wanted))

    async def read_responses(self, request: p4r.ReadRequest) -> list[p4r.ReadResponse]:
        assert self._p4client is not None
        return [response async for response in self._p4client.request_iter(request)]


class _TimeoutClient(P4Client):
    timeouts: CallTimeouts

    async def open(self, **options: Any) -> None:
        await super().open(**options)
        self._stub = _TimeoutStub(self._stub, self.timeouts)  # type: ignore[assignment]


class _TimeoutStub:
    """P4Runtime's stub; an RPC that has a timeout gets one of `CallTimeouts` instead."""

    def __init__(self, stub: Any, timeouts: CallTimeouts) -> None:
        self._stub = stub
        self._timeouts = timeouts

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._stub, name)
        seconds = self._timeouts.push_s if name == _PUSH else self._timeouts.call_s

        def call(*arguments: Any, **named: Any) -> Any:
            return method(*arguments, **named | ({"timeout": seconds} if "timeout" in named else {}))

        return call


def credentials(tls: Tls) -> fy.GRPCCredentialsTLS:
    return fy.GRPCCredentialsTLS(
        cacert=tls.ca, cert=tls.cert, private_key=tls.key, target_name_override=tls.server_name
    )


def is_task_canceled() -> bool:
    """True if this task was canceled; False if only an RPC within it was."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def error_text(error: fy.P4ClientError) -> str:
    """Code and message of the first refused update, or else of the RPC."""
    for detail in error.details.values():
        return f"{detail.canonical_code.name}: {detail.message}"
    return f"{error.code.name}: {error.message}"
