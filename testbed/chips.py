# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Switches of a testbed that are chip models: the controller's file of switches, and how busy their drivers keep a
machine before any job runs. Unmodified drivers poll the model without a pause: a pair of them takes most of two
processors, and a run then takes many times as long. The timeouts of the run itself are in step_timeouts.py."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from netfold.testbed.errors import RunError
from netfold.testbed.network import tofino_model
from netfold.testbed.network.handles import SwitchHandle
from netfold.testbed.network.tofino_model import DRIVERS
from netfold.topologies.fabric import Fabric
from netfold.topologies.ports import Chip

_P4INFO, _CONFIG = "netfold.p4info.txtpb", "netfold.pi.bin"
_MAKE = {
    Chip.TOFINO: f"python -m netfold.p4src.tools.tofino tofino --cpu-port {tofino_model.CPU_PORTS[Chip.TOFINO]}",
    Chip.TOFINO2: "python -m netfold.p4src.tools.tofino tofino2",
}
_TIMES = {
    "--host-rtt-ms": 200.0,  # a model takes milliseconds for a packet, up to 30 for a counter
    "--probe-interval": 30.0,  # probes queue behind retransmissions: at a load of 40 five of 5 s timed out
    "--counter-interval": 20.0,
    "--audit-interval": 300.0,
    "--rpc-timeout": 60.0,
    "--switch-restart-timeout": 600.0,
}

SAMPLE_S = 2.0

MAX_IDLE_SHARE = 0.2
"""Largest share of the processors for drivers without traffic. With the changes of docs/how-to/tofino.md they are
nearly idle."""

_PROC = Path("/proc")

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

_COMMAND_CHARACTERS = 15
"""Characters of a process's name in /proc/PID/stat."""


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


@dataclass(frozen=True)
class DriverLoad:
    """`busy`: processors that the drivers of all switches keep busy together."""

    processors: int
    busy: float

    def warning(self) -> str:
        """Why runs on this machine take long; "" for drivers that wait."""
        if self.busy <= MAX_IDLE_SHARE * self.processors:
            return ""
        return (
            f"the drivers keep {self.busy:.1f} of {self.processors} processors busy before any job runs, so calls may "
            "take minutes; build them with the two changes of docs/how-to/tofino.md, section 3"
        )


def measure_drivers(pairs: Iterable[int | None], sleep: Callable[[float], None] = time.sleep) -> DriverLoad:
    """Measure the load of the drivers that are children of these processes of model and drivers. It takes
    `SAMPLE_S`."""
    parents = {pid for pid in pairs if pid is not None}
    began, before = time.monotonic(), _used_s(parents)
    sleep(SAMPLE_S)
    used = sum(seconds - before[pid] for pid, seconds in _used_s(parents).items() if pid in before)
    return DriverLoad(os.cpu_count() or 1, used / (time.monotonic() - began))


def _used_s(parents: set[int]) -> dict[int, float]:
    """Return the processor time of each driver in seconds, by its pid (proc(5))."""
    found = {}
    for stat in _PROC.glob("[0-9]*/stat"):
        try:
            head, _, tail = stat.read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        fields = tail.split()
        if head.partition("(")[2] == DRIVERS[:_COMMAND_CHARACTERS] and int(fields[1]) in parents:
            found[int(stat.parent.name)] = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
    return found
