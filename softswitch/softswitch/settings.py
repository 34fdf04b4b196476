# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a switch process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Link:
    """The emulated link of a port."""

    rate_bps: int
    queue_packets: int


@dataclass(frozen=True)
class Tls:
    """PEM files; with `ca` clients must present a certificate of that CA."""

    certificate: Path
    key: Path
    ca: Path | None = None


@dataclass(frozen=True)
class Settings:
    """Settings of one switch process; the command line sets them (options.py)."""

    cache_dir: Path
    ports: Mapping[int, str] = field(default_factory=dict)
    sockets: Mapping[int, int] = field(default_factory=dict)
    links: Mapping[int, Link] = field(default_factory=dict)
    device_id: int = 0
    address: str = "127.0.0.1:9559"
    cpu_port: int = 510
    drop_port: int = 511
    program: Path | None = None
    p4info: Path | None = None
    captures: Path | None = None
    control_socket: Path | None = None
    tls: Tls | None = None
    ready_fd: int | None = None
    seed: int = 1
    insecure_remote: bool = False
    traced: bool = False
    dump_bytes: int = 0
    queues: int = 1
    gso: bool = False
    threads: int = 1
