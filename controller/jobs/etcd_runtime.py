# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The clock, threads and channels that the client of etcd and its leases use."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import grpc

_OPTIONS = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", -1),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.use_local_subchannel_pool", 1),
]


class LeaseEvent(Protocol):
    """The part of threading.Event that a lease uses."""

    def is_set(self) -> bool: ...

    def set(self) -> None: ...

    def wait(self, timeout: float) -> bool: ...


def boot_time() -> float:
    """Seconds that count on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _start(name: str, work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def _channel(member: str, credentials: grpc.ChannelCredentials | None) -> grpc.Channel:
    if credentials is None:
        return grpc.insecure_channel(member, _OPTIONS)
    return grpc.secure_channel(member, credentials, _OPTIONS)


@dataclass(frozen=True)
class EtcdRuntime:
    """`now` is the clock of leases, and `monotonic` that of deadlines. `start` runs work in a thread. `channel` leads
    to a member of etcd. A simulation replaces them (tests/simulation)."""

    now: Callable[[], float] = boot_time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    event: Callable[[], LeaseEvent] = threading.Event
    start: Callable[[str, Callable[[], None]], threading.Thread] = _start
    channel: Callable[[str, grpc.ChannelCredentials | None], grpc.Channel] = _channel


RUNTIME = EtcdRuntime()
