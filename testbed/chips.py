# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Options of the controller for switches that are chip models: the file of switches, and longer times. The timeouts of
the run itself are in step_timeouts.py."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from netfold.testbed.errors import RunError
from netfold.testbed.network import tofino_model
from netfold.testbed.network.handles import SwitchHandle
from netfold.topologies.fabric import Fabric
from netfold.topologies.ports import Chip

_P4INFO, _CONFIG = "netfold.p4info.txtpb", "netfold.pi.bin"
_MAKE = {
    Chip.TOFINO: f"python -m netfold.p4src.tools.tofino tofino --cpu-port {tofino_model.CPU_PORTS[Chip.TOFINO]}",
    Chip.TOFINO2: "python -m netfold.p4src.tools.tofino tofino2",
}
_TIMES = {
    "--host-rtt-ms": 200.0,  # a model takes milliseconds for a packet, up to 30 for a counter
    "--probe-s": 30.0,  # probes queue behind retransmissions: at a load of 40 five of 5 s timed out
    "--counter-poll-s": 20.0,
    "--audit-s": 300.0,
    "--rpc-timeout-s": 60.0,
    "--switch-restart-timeout-s": 600.0,
}


@dataclass(frozen=True)
class ChipProgram:
    """A chip and the folder of its program for the drivers."""

    chip: Chip
    folder: Path


def chip_program(fabric: Fabric, folder: Path | None) -> ChipProgram:
    """Return the program that all switches run. Raises RunError for a fabric of several chips or none, or a folder
    without a program."""
    chips = {s.name: s.chip for s in fabric.switches}
    for name, chip in chips.items():
        if chip is None:
            raise RunError(f"'{name}' has no 'chip' in fabric '{fabric.name}': expected {' or '.join(Chip)}")
    found = set(filter(None, chips.values()))
    if len(found) > 1:
        names = ", ".join(f"{name} ({chip})" for name, chip in chips.items())
        raise RunError(f"fabric '{fabric.name}' has several chips, and one program runs on one: {names}")
    (chip,) = found
    if folder is None or not (folder / _CONFIG).is_file():
        raise RunError(f"{folder or '--program'}: no program for the drivers; build it with `{_MAKE[chip]}`")
    return ChipProgram(chip, folder)


def options(path: Path, program: ChipProgram, switches: Iterable[SwitchHandle]) -> list[str]:
    """Options of `netfold controller run`; writes the file of switches to `path`."""
    defaults = {
        "target": "tofino",
        "server": "drivers",
        "cpu_port": tofino_model.CPU_PORTS[program.chip],
        "p4info": str(program.folder.resolve() / _P4INFO),
        "config": str(program.folder.resolve() / _CONFIG),
    }
    addresses = {s.name: {"address": s.grpc_address} for s in switches}
    path.write_text(yaml.safe_dump({"defaults": defaults, "switches": addresses}))
    return ["--switches", str(path), *(word for k, v in _TIMES.items() for word in (k, str(v)))]
