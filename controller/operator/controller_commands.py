# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold controller`: run it, or show its switches."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from netfold.controller.core import Options
from netfold.controller.jobs.store import StoreError
from netfold.controller.lifecycle.job_admission import PacketModel
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.operator.controller_client import (
    BAD_INPUT,
    NO_CONTROLLER,
    AsJson,
    call_controller,
    fail,
    note_standby,
    plain,
    print_json,
)
from netfold.controller.recording.recording_file import RecordingError
from netfold.controller.service.daemon import DaemonOptions, run
from netfold.controller.service.server import ListenError, Security
from netfold.controller.switches.devicefile import read_devices
from netfold.controller.switches.devices import V1MODEL_LANES, best_lanes, programs
from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.fleet import FleetOptions
from netfold.controller.switches.session import RPC_TIMEOUT_S
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.connection import default_socket
from netfold.protocol.options import ControllerOptions, reaches_controller
from netfold.topologies.addressing import FIRST_GRPC_PORT
from netfold.topologies.fabric import FabricError
from netfold.topologies.spec import load_fabric

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Run the controller, or show its switches."
)

_PROGRAMS = Path(str(resources.files("netfold"))) / "p4src" / "compiled"


@app.command("run")
def run_controller(
    fabric: Annotated[str, typer.Argument(help="Fabric file (YAML), or name of a fabric of netfold.")],
    listen: Annotated[
        str | None,
        typer.Option(
            help="unix:PATH, or HOST:PORT with TLS; default: the default socket.", rich_help_panel="Service"
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="Database of jobs and epochs; default: FABRIC.db in /var/lib/netfold (root) or "
            "$XDG_STATE_HOME/netfold."
        ),
    ] = None,
    lanes: Annotated[
        int | None,
        typer.Option(
            help="Lanes of a packet: 32, 64 or 256; default: the maximum of the switches.",
            rich_help_panel="Program",
        ),
    ] = None,
    scale: Annotated[
        float,
        typer.Option(
            min=1e-9, help="Rate on the wire per rate in the fabric file.", rich_help_panel="Packet model"
        ),
    ] = 1.0,
    host_rtt_ms: Annotated[
        float,
        typer.Option(min=0.001, help="RTT in ms without the links' delays.", rich_help_panel="Packet model"),
    ] = 2.0,
    audit_s: Annotated[
        float, typer.Option(min=0.1, help="Seconds between two audits of a switch.", rich_help_panel="Timing")
    ] = 30.0,
    counter_poll_s: Annotated[
        float,
        typer.Option(
            min=0.1,
            help="Seconds between two readings of the port counters of a switch.",
            rich_help_panel="Timing",
        ),
    ] = 1.0,
    rpc_timeout_s: Annotated[
        float,
        typer.Option(
            min=0.1,
            help="Timeout of an RPC to a switch, in seconds; 6 times that for a pipeline push.",
            rich_help_panel="Timing",
        ),
    ] = RPC_TIMEOUT_S,
    probe_s: Annotated[
        float,
        typer.Option(
            min=0.0, help="Seconds between two probes of a link; 0: no probes.", rich_help_panel="Timing"
        ),
    ] = 0.3,
    switch_restart_timeout_s: Annotated[
        float,
        typer.Option(
            min=0.5,
            help="Seconds that a switch may be unreachable before its jobs fail.",
            rich_help_panel="Timing",
        ),
    ] = 8.0,
    first_grpc_port: Annotated[
        int, typer.Option(help="P4Runtime port of the first switch.")
    ] = FIRST_GRPC_PORT,
    p4info: Annotated[
        Path | None,
        typer.Option(help="P4Info of the program; default: the one in p4src.", rich_help_panel="Program"),
    ] = None,
    program: Annotated[
        Path | None,
        typer.Option(help="Compiled program; default: the one in p4src.", rich_help_panel="Program"),
    ] = None,
    switches: Annotated[
        Path | None,
        typer.Option(
            help="File with the target and address of each switch (docs/how-to/tofino.md).",
            rich_help_panel="Program",
        ),
    ] = None,
    metrics_port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            help="Port of the Prometheus endpoint on 127.0.0.1; 0 disables it.",
            rich_help_panel="Service",
        ),
    ] = 0,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Record to this file, for `netfold replay`.", rich_help_panel="Service"
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="Server certificate (PEM).", rich_help_panel="Service")
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(help="Private key of the server certificate (PEM).", rich_help_panel="Service"),
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option(help="File with one token per line.", rich_help_panel="Service")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every step.")] = False,
) -> None:
    """Control the switches of a fabric until interrupted. A second controller with the same --state is the standby.

    Exit codes: 0 stopped, 2 bad fabric or option, 4 the state, the address or the recording cannot be used.
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("finsy").setLevel(logging.CRITICAL)
    errors = Console(stderr=True)
    try:
        known = load_fabric(fabric)
        devices = read_devices(switches, known, lanes or V1MODEL_LANES) if switches else {}
        if lanes is None:
            lanes = best_lanes(known, devices)
            devices = read_devices(switches, known, lanes) if switches else {}
        known = known.in_one_pipe(programs(known, devices))
        if state is None:
            state = default_state(known.name)
            errors.print(f"netfold controller: state in {state}", soft_wrap=True)
        options = DaemonOptions(
            state=state,
            listen=listen or default_socket(),
            security=_security(tls_cert, tls_key, tokens),
            controller=Options(
                wire=PacketModel(lanes, scale, host_rtt_ms / 1000),
                pipeline=_pipeline(lanes, p4info, program),
                timeouts=ControllerTimeouts(restart=switch_restart_timeout_s),
                fleet=FleetOptions(audit_s, counter_poll_s, rpc_timeout_s),
                probe_s=probe_s,
            ),
            first_grpc_port=first_grpc_port,
            metrics_port=metrics_port,
            record=record,
            devices=devices,
        )
        asyncio.run(
            run(known, options, lambda what: errors.print(f"netfold controller: {what}", soft_wrap=True))
        )
    except FabricError as error:
        fail(BAD_INPUT, str(error))
    except (StoreError, ListenError, RecordingError) as error:
        fail(NO_CONTROLLER, str(error))


@app.command("status")
@reaches_controller
def status(where: ControllerOptions, as_json: AsJson = False) -> None:
    """Show the switches: which are ready, slots in use, entries repaired.

    Exit codes: 0 shown, 4 no controller answers.
    """
    answer = call_controller(where, lambda stub: stub.GetStatus(pb.StatusRequest(), timeout=10))
    if as_json:
        print_json(plain(answer))
        return
    table = Table("switch", "address", "ready", "slots", "repaired")
    for row in answer.switches:
        slots = f"{row.slots_in_use}/{row.slots}"
        ready, repaired = "yes" if row.ready else "no", str(row.repaired_entries)
        if not answer.primary:
            ready = repaired = "?"
        table.add_row(row.name, row.address, ready, slots, repaired)
    if not answer.primary:
        note_standby(answer.primary_address)
    Console().print(table)


def default_state(fabric: str) -> Path:
    """Independent of the working directory: with another store the controller would replace the switches' entries and
    clear their registers."""
    if os.geteuid() == 0:
        return Path("/var/lib/netfold") / f"{fabric}.db"
    own = os.environ.get("XDG_STATE_HOME")
    return (Path(own) if own else Path.home() / ".local" / "state") / "netfold" / f"{fabric}.db"


def _security(cert: Path | None, key: Path | None, tokens: Path | None) -> Security | None:
    if cert is None and key is None and tokens is None:
        return None
    if cert is None or key is None or tokens is None:
        fail(BAD_INPUT, "TCP requires --tls-cert, --tls-key and --tokens")
    try:
        known = frozenset(tokens.read_text().split())
        pair = cert.read_bytes(), key.read_bytes()
    except (OSError, UnicodeDecodeError) as error:
        fail(BAD_INPUT, str(error))
    if not known or any(len(t) < 16 for t in known):
        fail(BAD_INPUT, f"{tokens}: expected at least one token, each of 16 characters or more")
    return Security(*pair, known)


def _pipeline(lanes: int, p4info: Path | None, program: Path | None) -> Pipeline:
    chosen = Pipeline(
        p4info or _PROGRAMS / f"netfold-v1model-{lanes}.p4info.txtpb",
        program or _PROGRAMS / f"netfold-v1model-{lanes}.json",
    )
    for path in (chosen.p4info, chosen.blob):
        if not path.is_file():
            known = ", ".join(
                sorted(p.stem.rsplit("-", 1)[1] for p in _PROGRAMS.glob("*.json") if "-v1model-" in p.stem)
            )
            fail(BAD_INPUT, f"{path} is missing; there are programs for {known} lanes")
    return chosen
