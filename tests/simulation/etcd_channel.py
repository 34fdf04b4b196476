# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The way between a controller's process and a simulated etcd. A call may be late or lost, its answer may be, and it
may arrive twice."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import grpc

from netfold.controller.jobs.etcd_runtime import EtcdRuntime
from tests.simulation.etcd import EtcdError, SimulatedEtcd
from tests.simulation.faults import Draws
from tests.simulation.process import Process
from tests.simulation.thread import ThreadEvent, current_thread

ANSWER_S = 0.003
"""Mean time of a call."""
LATE_S = (0.2, 4.0)
"""So long takes a call that is late: longer than its caller waits, mostly."""
AGAIN_S = (0.0, 6.0)
"""So much later a call arrives again, also when another controller leads."""

AWAY_ANSWERED = 0.5
"""Chance of an answer, which is an error, while etcd has no majority."""


class Fate(Enum):
    """The fate of a call."""

    ANSWERED = "it is answered"
    LATE = "it arrives late"
    LOST = "it does not arrive"
    UNANSWERED = "its answer is lost"
    TWICE = "it arrives twice"
    REFUSED = "the member is not there"


FAULTS = [fate for fate in Fate if fate is not Fate.ANSWERED]


@dataclass(frozen=True)
class Link:
    """Between a machine and etcd. `faults`: chance of a fault, for each call."""

    passes_requests: bool = True
    passes_answers: bool = True
    delay_s: float = 0.0
    faults: float = 0.0

    @property
    def is_whole(self) -> bool:
        return self.passes_requests and self.passes_answers and self.delay_s == 0

    def heal(self) -> Link:
        return Link(faults=self.faults)


class EtcdChannel:
    """The parts of grpc.Channel that etcd's client uses."""

    def __init__(self, etcd: SimulatedEtcd, link: Callable[[], Link], process: Process, draws: Draws) -> None:
        self._etcd = etcd
        self._link = link
        self._process = process
        self._draws = draws

    def close(self) -> None: ...

    def unary_unary(self, path: str, **_: Any) -> Callable[..., Any]:
        return partial(self._call, path)

    def stream_stream(self, path: str, **_: Any) -> Callable[..., _Stream]:
        return lambda requests, timeout, **_: _Stream(lambda: self._call(path, next(requests), timeout))

    def _call(self, path: str, request: Any, timeout: float, **_: Any) -> Any:
        """Raises EtcdError."""
        sent = type(request)()
        sent.CopyFrom(request)
        link = self._link()
        fate = self._fate(link)
        chosen = self._draws.of("etcd")
        takes_s = chosen.uniform(0, 2 * ANSWER_S) + chosen.uniform(0, link.delay_s)
        if fate is Fate.LATE:
            takes_s = chosen.uniform(*LATE_S)
        arrives_s = takes_s * chosen.random()
        answers: list[Any] = []

        def send(wake: Callable[[], None]) -> None:
            if fate is not Fate.LOST:
                _later(arrives_s, lambda: arrive(wake))
            if fate is Fate.TWICE:
                _later(takes_s + chosen.uniform(*AGAIN_S), lambda: self._made(path, sent))

        def arrive(wake: Callable[[], None]) -> None:
            if not self._link().passes_requests:
                return
            answer = self._made(path, sent) if fate is not Fate.REFUSED else _away()
            is_heard = self._etcd.has_majority or chosen.random() < AWAY_ANSWERED
            if fate is not Fate.UNANSWERED and is_heard:
                _later(takes_s - arrives_s, lambda: return_with(answer, wake))

        def return_with(answer: Any, wake: Callable[[], None]) -> None:
            if self._link().passes_answers:
                answers.append(answer)
                wake()

        current_thread().wait(timeout, send)
        if not answers:
            raise EtcdError(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
        if isinstance(answers[0], EtcdError):
            raise answers[0]
        return answers[0]

    def _made(self, path: str, request: Any) -> Any:
        try:
            return self._etcd.call(path.removeprefix("/etcdserverpb."), request)
        except EtcdError as error:
            return error

    def _fate(self, link: Link) -> Fate:
        if link.faults and self._draws.happens("etcd call", link.faults):
            return self._draws.of("fate").choice(FAULTS)
        return Fate.ANSWERED


class _Stream:
    """One answer."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._call()

    def cancel(self) -> None: ...


class _DirectChannel:
    """Make the runtime of the world itself, which does not wait."""

    def __init__(self, etcd: SimulatedEtcd) -> None:
        self._etcd = etcd

    def close(self) -> None: ...

    def unary_unary(self, path: str, **_: Any) -> Callable[..., Any]:
        return lambda request, **_: self._etcd.call(path.removeprefix("/etcdserverpb."), request)


def runtime_of(etcd: SimulatedEtcd, link: Callable[[], Link], process: Process, draws: Draws) -> EtcdRuntime:
    """The clock, threads and channels of a controller's process."""

    def sleep(seconds: float) -> None:
        current_thread().wait(seconds)

    return EtcdRuntime(
        _now,
        _now,
        sleep,
        ThreadEvent,
        lambda _, work: process.start(work),  # type: ignore[arg-type, return-value]
        lambda member, _: EtcdChannel(etcd, link, process, draws),  # type: ignore[arg-type, return-value]
    )


def direct(etcd: SimulatedEtcd) -> EtcdRuntime:
    """The state of the world beside all processes."""
    return EtcdRuntime(_now, _now, channel=lambda member, _: _DirectChannel(etcd))  # type: ignore[arg-type, return-value]


def _now() -> float:
    return asyncio.get_running_loop().time()


def _later(seconds: float, call: Callable[[], object]) -> None:
    asyncio.get_running_loop().call_later(seconds, call, context=contextvars.Context())


def _away() -> EtcdError:
    return EtcdError(grpc.StatusCode.UNAVAILABLE, "connection refused")
