# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What the controller is told where the switches of a run are models of chips: their file, and other times. How long
the run itself waits for them is in patience.py."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from netfold.testbed.errors import RunError
from netfold.topologies.network import tofino_model
from netfold.topologies.network.handles import SwitchHandle

_P4INFO, _CONFIG = "netfold.p4info.txtpb", "netfold.pi.bin"
_MAKE = "python -m tools.tofino tofino --cpu-port 320"
_TIMES = {
    "--rtt-ms": 200.0,  # a packet takes a model milliseconds, and a counter up to 30 of them
    "--probe-s": 30.0,  # a probe waits behind all that was sent twice: at a load of 40 five of 5 s were not enough
    "--look-s": 20.0,
    "--audit-s": 300.0,
    "--answer-s": 60.0,
    "--restart-s": 600.0,
}


def options(path: Path, program: Path | None, switches: Iterable[SwitchHandle]) -> list[str]:
    """Of `netfold controller run`, with the file of switches, which is written to `path`. `program` is the folder that
    has it for the drivers. Raises RunError."""
    if program is None or not (program / _CONFIG).is_file():
        raise RunError(f"{program or '--program'}: no program for the drivers; make one by `{_MAKE}`")
    defaults = {
        "target": "tofino",
        "server": "drivers",
        "cpu_port": tofino_model.CPU_PORT,
        "p4info": str(program.resolve() / _P4INFO),
        "config": str(program.resolve() / _CONFIG),
    }
    addresses = {s.name: {"address": s.grpc_address} for s in switches}
    path.write_text(yaml.safe_dump({"defaults": defaults, "switches": addresses}))
    return ["--switches", str(path), *(word for k, v in _TIMES.items() for word in (k, str(v)))]
