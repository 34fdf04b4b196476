# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""finsy's switch, with times of our own: finsy ends every call after ten seconds, also one that pushes a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import finsy as fy
from finsy.p4client import P4Client

_PUSH = "SetForwardingPipelineConfig"


@dataclass(frozen=True)
class CallTimes:
    """Seconds for a push, and for any other call."""

    push_s: float
    call_s: float


class PatientSwitch(fy.Switch):  # type: ignore[misc]  # final to type checkers; it has no other way in
    def __init__(self, name: str, address: str, options: fy.SwitchOptions, times: CallTimes) -> None:
        super().__init__(name, address, options)
        self._times = times

    def _switch_start(self) -> None:
        """What finsy calls first, when it has made its client."""
        credentials = self.options.channel_credentials
        self._p4client = _PatientClient(self.address, credentials, wait_for_ready=False)
        self._p4client.times = self._times
        super()._switch_start()  # type: ignore[no-untyped-call]


class _PatientClient(P4Client):
    times: CallTimes

    async def open(self, **options: Any) -> None:
        await super().open(**options)
        self._stub = _PatientStub(self._stub, self.times)  # type: ignore[assignment]


class _PatientStub:
    """P4Runtime's calls; those that get a timeout get another one."""

    def __init__(self, stub: Any, times: CallTimes) -> None:
        self._stub = stub
        self._times = times

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._stub, name)
        seconds = self._times.push_s if name == _PUSH else self._times.call_s

        def call(*arguments: Any, **named: Any) -> Any:
            return method(*arguments, **named | ({"timeout": seconds} if "timeout" in named else {}))

        return call
