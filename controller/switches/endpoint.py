# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What a session is told of its switch, and what it tells."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from netfold.controller.switches.entries import Contents, Key


@dataclass(frozen=True)
class Pipeline:
    """What p4c made of the switch program, for one lane count."""

    p4info: Path
    blob: Path


@dataclass(frozen=True)
class Tls:
    """How a switch's server is trusted, and what it is shown: files in PEM. `server_name` is the name in its
    certificate, where that is not its address."""

    ca: Path
    cert: Path | None = None
    key: Path | None = None
    server_name: str = ""


@dataclass(frozen=True)
class Target:
    """What the switch should hold; versions count up."""

    version: int
    contents: Contents


@dataclass(frozen=True)
class Endpoint:
    """Where a switch is. `marker` is the key that only this store's controllers write: with it, registers
    hold nothing that the store does not know of. `pipeline` is its own, None that of all; `one_shot`: ECMP sets are
    written with their routes; `full_width`: numbers bear leading zeros. Of `incoming` ports it is read what arrives, of
    `outgoing` ones what departs."""

    name: str
    address: str
    device_id: int
    marker: Key
    pipeline: Pipeline | None = None
    one_shot: bool = True
    tls: Tls | None = None
    full_width: bool = False
    incoming: tuple[int, ...] = ()
    outgoing: tuple[int, ...] = ()


@dataclass
class Health:
    """What a session tells about its switch. `reached`: its server answers, and may still be taking the pipeline."""

    ready: bool = False
    reached: bool = False
    applied: int = 0
    error: str = "not connected yet"
    since: float = field(default_factory=time.monotonic)
    repaired: int = 0
    converge_s: float = 0.0
    audits: int = 0
