# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A Tofino without hardware: the chip's model and the drivers with their P4Runtime server, as one switch process.

    python -m netfold.testbed.network.tofino_model --grpc 127.0.0.1:50051 --folder DIR -i 1@nf1-1 -i 129@nf1-2

`--chip tofino2` selects Tofino 2. If one of the two processes ends, the other is ended. Ports have the chip's numbers
and forward without being enabled.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.tools import tool
from netfold.topologies.ports import Chip

MODEL, DRIVERS = "tofino-model", "bf_switchd"
CPU_PORT = 320
"""The PCIe port of a Tofino with four pipes, like the model."""

CPU_PORTS = {Chip.TOFINO: CPU_PORT, Chip.TOFINO2: 0}

DEVICE_ID = 0
"""The drivers' only device. They crash when a program is pushed to another id."""

HUGE_PAGES = 128
"""Free huge pages of 2 MB that the drivers need for DMA."""

SWITCH_BYTES = {Chip.TOFINO: 3_600_000_000, Chip.TOFINO2: 3_900_000_000}
"""Memory of a model and its drivers."""

_FREE_PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
_MEMORY = Path("/proc/meminfo")
_AVAILABLE = re.compile(r"MemAvailable: *(\d+) kB")


@dataclass(frozen=True)
class _Names:
    """Names of a chip in the model's option and the drivers' configuration file."""

    chip_type: str
    family: str


_NAMES = {Chip.TOFINO: _Names("2", "Tofino"), Chip.TOFINO2: _Names("5", "Tofino2")}  # revision B0 of both
_FIRST_TCP_PORT = 10_000
_GRACE_S = 3.0
_PORT_FREE_S = 10.0


def check(*others: str) -> None:
    """Raises NetworkError if one of the two, or of `others`, is missing; names all that are."""
    of = dict.fromkeys((MODEL, DRIVERS), "open-p4studio") | dict.fromkeys(
        others, "p4c with its Tofino back end"
    )
    missing: dict[str, list[str]] = {}
    for name, project in of.items():
        if shutil.which(name) is None:
            missing.setdefault(project, []).append(name)
    if missing:
        parts = (f"{' and '.join(names)} (build p4lang/{project})" for project, names in missing.items())
        raise NetworkError(f"not on PATH: {', '.join(parts)}; see docs/how-to/tofino.md, section 3")


def check_capacity(switches: int = 1, chip: Chip = Chip.TOFINO) -> None:
    """Raises NetworkError for too few huge pages (the drivers would end with `bf_sys_dma_pool_create failed`) or too
    little memory."""
    free = int(_FREE_PAGES.read_text()) if _FREE_PAGES.exists() else 0
    if free < switches * HUGE_PAGES:
        raise NetworkError(
            f"{free} huge pages of 2 MB are free; each switch of tofino-model needs {HUGE_PAGES}: "
            f"sysctl vm.nr_hugepages={switches * HUGE_PAGES} for {switches}"
        )
    found = _AVAILABLE.search(_MEMORY.read_text())
    available = int(found[1]) * 1024 if found else 0
    needed = switches * SWITCH_BYTES[chip]
    if available < needed:
        raise NetworkError(
            f"{available / 1e9:.1f} GB of memory are available; {switches} switches of tofino-model need "
            f"{needed / 1e9:.1f}; FABRIC={chip}-leaf has one switch"
        )


def tcp_port(grpc_port: int) -> int:
    """TCP port of the model's register accesses; the next port is for the drivers' DMA."""
    return _FIRST_TCP_PORT + 4 * (grpc_port % 10_000)


def commands(
    grpc: str, ports: Mapping[int, str], folder: Path, chip: Chip = Chip.TOFINO
) -> tuple[list[str], list[str]]:
    """The commands of model and drivers; writes their files to the folder."""
    model, drivers = (shutil.which(n) for n in (MODEL, DRIVERS))
    assert model is not None
    assert drivers is not None
    base = str(tcp_port(int(grpc.rpartition(":")[2])))
    interfaces, config = folder / "ports.json", folder / "drivers.json"
    interfaces.write_text(json.dumps({"PortToIf": [{"device_port": p, "if": i} for p, i in ports.items()]}))
    names = _NAMES[chip]
    asic = {"id": "asic-0", "chip_family": names.family, "instance": 0}
    config.write_text(
        json.dumps({"instance": 0, "chip_list": [asic], "p4_devices": [{"device-id": 0, "p4_programs": []}]})
    )
    common = ["--install-dir", str(Path(drivers).resolve().parent.parent)]
    quiet = ["--chip-type", names.chip_type, "--time-disable", "--no-cli", "--logs-disable"]
    serving = ["--background", "--server-listen-local-only", "--p4rt-server", grpc]
    return (
        [model, "-d", "1", "-k", "1", "-f", str(interfaces), "-t", base, *common, *quiet],
        [drivers, "--conf-file", str(config), "--tcp-port-base", base, *common, *serving],
    )


def run(grpc: str, ports: Mapping[int, str], folder: Path, chip: Chip = Chip.TOFINO) -> int:
    """Start both and wait until one of them ends (1) or a signal arrives (0)."""
    folder.mkdir(parents=True, exist_ok=True)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    _wait_free(int(grpc.rpartition(":")[2]), stop)
    _wait_free(tcp_port(int(grpc.rpartition(":")[2])), stop)
    running: dict[str, subprocess.Popen[bytes]] = {}
    reason = ""
    try:
        check_capacity(chip=chip)
    except NetworkError as error:
        reason = f": {error}"
    try:
        for command in commands(grpc, ports, folder, chip):
            words = [tool("setpriv"), "--pdeathsig", "KILL", *command]
            running[command[0]] = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL)
        while not stop.wait(0.1):  # no wait of the kernel's is for two processes and a signal
            for program, process in running.items():
                if process.poll() is not None:
                    sys.stderr.write(f"{program} ended with {process.returncode}{reason}\n")
                    return 1
        return 0
    finally:
        for process in running.values():
            process.terminate()
        deadline = time.monotonic() + _GRACE_S
        for process in running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            process.kill()
            process.wait()


def _wait_free(port: int, stop: threading.Event) -> None:
    """Waits for the end of a killed pair, which still holds the port."""
    deadline = time.monotonic() + _PORT_FREE_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return
        if stop.wait(0.05):  # the kernel does not report when a port is free
            return


def _port(text: str) -> tuple[int, str]:
    number, _, interface = text.partition("@")
    return int(number), interface


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", type=int, metavar="SWITCHES", help="only check the requirements of SWITCHES switches"
    )
    parser.add_argument("others", nargs="*", help="further programs that --check requires")
    parser.add_argument("--grpc", default="127.0.0.1:50051")
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--chip", type=Chip, default=Chip.TOFINO)
    parser.add_argument("-i", dest="ports", type=_port, action="append", default=[])
    options = parser.parse_args(arguments)
    if options.check is not None:
        try:
            check(*options.others)
            check_capacity(options.check, options.chip)
        except NetworkError as error:
            sys.stderr.write(f"netfold: {error}\n")
            return 1
        return 0
    return run(options.grpc, dict(options.ports), options.folder, options.chip)


if __name__ == "__main__":
    sys.exit(main())
