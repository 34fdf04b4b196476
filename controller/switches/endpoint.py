# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Describes the address of a switch, and how its controller connects to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from netfold.controller.switches.entries import Key


@dataclass(frozen=True)
class Pipeline:
    """P4Info and device config of a switch program, for one lane count."""

    p4info: Path
    blob: Path


@dataclass(frozen=True)
class Tls:
    """PEM files: the CA of a switch's certificate, and the certificate and key of the controller. `server_name` is the
    name in the certificate of the switch if it is not its address."""

    ca: Path
    cert: Path | None = None
    key: Path | None = None
    server_name: str = ""


@dataclass(frozen=True)
class Endpoint:
    """A switch.

    marker      key of an entry that only controllers of this store write. All register contents of a switch that has
                it are in the store
    management_tree  tree number of the entry with the revision of its slots (base_entries.py)
    lanes       values of a packet
    pipeline    its own pipeline; None: that of all switches
    one_shot    ECMP sets are written with their routes (one-shot action sets)
    full_width  numbers are written with leading zeros (server_forms.py)
    rx_ports    ports whose received bytes are read
    tx_ports    ports whose sent bytes are read
    """

    name: str
    address: str
    device_id: int
    marker: Key
    management_tree: int
    lanes: int
    pipeline: Pipeline | None = None
    one_shot: bool = True
    tls: Tls | None = None
    full_width: bool = False
    rx_ports: tuple[int, ...] = ()
    tx_ports: tuple[int, ...] = ()
