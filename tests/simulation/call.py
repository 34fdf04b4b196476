# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A call to a simulated switch: its way there, its effect and its way back, each of which may go wrong."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

import finsy as fy
import grpc

if TYPE_CHECKING:
    from tests.simulation.connection import SimulatedConnection

Result = TypeVar("Result")


def rpc_error(code: grpc.StatusCode, text: str) -> fy.P4ClientError:
    nothing = grpc.aio.Metadata()
    return fy.P4ClientError(grpc.aio.AioRpcError(code, nothing, nothing, text), "simulated")


class Call(Generic[Result]):
    """A call on its way to a switch and back: timers instead of tasks, as nearly all that a run does is calls. `answer`
    has its result or error. It belongs to the world: what is on its way when its process dies may still arrive."""

    def __init__(
        self, connection: SimulatedConnection, effect: Callable[[], Result], *, is_write: bool
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Result] = self._loop.create_future()
        self._connection = connection
        self._switch = connection.switch
        self._draws = self._switch.draws
        self._effect = effect
        self._is_write = is_write
        self._travels: asyncio.TimerHandle | None = None
        self._times_out: asyncio.TimerHandle | None = None

    def start(self, timeout_s: float) -> None:
        self._travel(self._arrive)
        self._times_out = self._later(timeout_s, self._time_out)

    def _time_out(self) -> None:
        self._fail(rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"))

    def on_broken(self) -> None:
        """The channel breaks. What is on its way may still arrive, as is drawn in `abandon`."""
        if self._draws.happens("kind of loss", 0.3):
            self.answer.cancel()
        else:
            self._fail(rpc_error(grpc.StatusCode.UNAVAILABLE, "the channel broke"))

    def abandon(self) -> None:
        """The caller waits no longer."""
        assert self._times_out is not None
        self._times_out.cancel()
        if self._travels is None:
            return
        if not (self._is_write and self._draws.happens("late write", self._draws.intensity.late_write)):
            self._travels.cancel()
            self._travels = None

    def _arrive(self) -> None:
        if self._switch.is_running.is_set():
            self._take_effect()
        else:
            self._loop.create_task(self._arrive_later(), context=contextvars.Context())

    async def _arrive_later(self) -> None:
        """When the switch hangs no longer."""
        await self._switch.is_running.wait()
        if self._travels is not None:
            self._take_effect()

    def _take_effect(self) -> None:
        draws, connection, switch = self._draws, self._connection, self._switch
        if draws.happens("rpc", draws.intensity.rpc_error):
            self._fail(rpc_error(grpc.StatusCode.INTERNAL, "a fault of the switch"))
            return
        try:
            if draws.happens("stream", draws.intensity.stream_loss):
                switch.history.add(switch.name, "the stream is lost")
                if self._is_write and draws.happens("which half", 0.5):
                    self._effect()
                connection.drop()
            lands = self._is_write and draws.happens("in flight", 0.3)
            if (connection.is_broken and not lands) or not switch.is_up:
                self._fail(rpc_error(grpc.StatusCode.UNAVAILABLE, "the channel broke"))
                return
            result = self._effect()
        except fy.P4ClientError as error:
            self._fail(error)
        else:
            self._travel(lambda: self._succeed(result))

    def _succeed(self, result: Result) -> None:
        self._travels = None
        if not self.answer.done():
            self.answer.set_result(result)

    def _fail(self, error: fy.P4ClientError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)

    def _travel(self, then: Callable[[], None]) -> None:
        self._travels = self._later(self._switch.way_s(f"way to {self._switch.name}"), then)

    def _later(self, seconds: float, then: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(seconds, then, context=contextvars.Context())
