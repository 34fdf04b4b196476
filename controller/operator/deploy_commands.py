# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold deploy`: the files that make a bare server a switch, or a host of parameter servers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from netfold.controller.operator.server_files import (
    File,
    ParameterServerNode,
    SwitchNode,
    estimate,
    parameter_server_files,
    switch_files,
)
from netfold.protocol.wire import LANES_MAX, lanes_that_fit, mtu_for
from netfold.topologies.cli import BAD_INPUT, fail

app = typer.Typer()

CORES_LEFT = 2  # for the kernel's interrupts and the control plane

OutOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write the files below DIR, `/` for this server. Default: print them."),
]
ThreadsOption = Annotated[int, typer.Option(min=1, help="Threads: a power of two for a switch; a core each.")]
MtuOption = Annotated[int, typer.Option(min=576, max=65535, help="MTU of the interfaces.")]
LanesOption = Annotated[int, typer.Option(min=4, max=LANES_MAX, help="Lanes of a packet.")]
CpusOption = Annotated[
    str | None, typer.Option(metavar="LIST", help="Processors, as 2-9 (systemd's CPUAffinity).")
]


@app.command()
def switch(
    interface: Annotated[
        list[str], typer.Option("-i", "--interface", help="Interface of port 1, 2, ...; repeatable.")
    ],
    threads: ThreadsOption = 1,
    device_id: Annotated[int, typer.Option(min=0, help="P4Runtime device id.")] = 1,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of P4Runtime.")] = "0.0.0.0:9559",
    mtu: MtuOption = 1500,
    lanes: LanesOption = 256,
    cpus: CpusOption = None,
    rate_gbps: Annotated[float, typer.Option(help="Rate of an interface, for the estimate.")] = 100.0,
    us_per_packet: Annotated[
        float, typer.Option(help="Measured processor time of a packet, in and out (docs/how-to/server.md).")
    ] = 0.8,
    out: OutOption = None,
) -> None:
    """Files of a server that is a switch: softswitch with a port on each interface."""
    if threads & (threads - 1) or threads > 16:
        fail(f"--threads {threads}: expected a power of two, 1..16", BAD_INPUT)
    _check_mtu(interface, mtu, lanes)
    _write(switch_files(SwitchNode(tuple(interface), threads, device_id, listen, mtu, cpus)), out)
    needed = estimate(rate_gbps, len(interface), lanes, us_per_packet)
    _note(
        f"{len(interface)} x {rate_gbps:g} Gbit/s of {lanes} lanes: {needed.packets_per_s / 1e6:.1f} M packets/s; at "
        f"{us_per_packet:g} us a packet {needed.cores:.1f} cores, and {CORES_LEFT} for the rest"
    )
    _note("systemctl daemon-reload && systemctl enable --now netfold-switch")


@app.command("ps")
def parameter_server(
    interface: Annotated[str, typer.Option("-i", "--interface", help="Interface of the fabric.")],
    controller: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of the controller.")],
    threads: ThreadsOption = 1,
    mtu: MtuOption = 1500,
    lanes: LanesOption = 256,
    cpus: CpusOption = None,
    out: OutOption = None,
) -> None:
    """Files of a server on which parameter servers run, one service a job."""
    _check_mtu([interface], mtu, lanes)
    _write(parameter_server_files(ParameterServerNode(interface, threads, controller, mtu, cpus)), out)
    _note("systemctl daemon-reload && sysctl --system && systemctl enable --now netfold-ps@JOB")


def _check_mtu(interfaces: Sequence[str], mtu: int, lanes: int) -> None:
    if mtu < mtu_for(lanes):
        fail(
            f"{' and '.join(interfaces)}: an MTU of {mtu} carries at most {lanes_that_fit(mtu)} lanes; expected an "
            f"--mtu of at least {mtu_for(lanes)}, or fewer --lanes than {lanes}",
            BAD_INPUT,
        )


def _write(files: Sequence[File], out: Path | None) -> None:
    for file in files:
        if out is None:
            typer.echo(f"# ---- {file.path}\n{file.text}")
            continue
        target = out / file.path.relative_to("/")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(file.text)
            target.chmod(0o755 if file.is_executable else 0o644)
        except OSError as error:
            fail(f"{target}: {error.strerror or error}", BAD_INPUT)
        _note(f"wrote {target}")


def _note(text: str) -> None:
    typer.echo(text, err=True)
