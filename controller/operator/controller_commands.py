# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold controller`: run it, or show its switches."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from netfold.controller.jobs.engine import FileEngine, StoreError
from netfold.controller.jobs.etcd_engine import engine_of
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.operator.controller_client import (
    BAD_INPUT,
    NO_CONTROLLER,
    fail,
)
from netfold.controller.operator.controller_options import (
    PacketModelOptions,
    ProgramOptions,
    ServiceOptions,
    TimingOptions,
)
from netfold.controller.recording.recording_file import RecordingError
from netfold.controller.service.daemon import DaemonOptions, run
from netfold.controller.service.listening import ListenError
from netfold.controller.subsystems import Options
from netfold.controller.switches.devices import programs
from netfold.controller.switches.finsy_adapter import log_state_changes_only
from netfold.controller.switches.fleet import FleetOptions
from netfold.protocol.connection import default_socket
from netfold.protocol.option_groups import expand_groups
from netfold.protocol.runtime import DEFAULT_NAME, default_name, is_root
from netfold.topologies.addressing import FIRST_GRPC_PORT
from netfold.topologies.cli import FabricArgument
from netfold.topologies.fabric import Fabric, FabricError
from netfold.topologies.spec import load_fabric


@expand_groups
def run_controller(
    fabric: FabricArgument,
    service: ServiceOptions,
    program: ProgramOptions,
    timing: TimingOptions,
    packet_model: PacketModelOptions,
    state: Annotated[
        str | None,
        typer.Option(
            help="Database of jobs and job epochs, or etcd://HOST:PORT,.../PREFIX?ca=FILE&cert=FILE&key=FILE; default: "
            "FABRIC.db, or NAME-FABRIC.db of a network with a name, in /var/lib/netfold (root) or "
            "$XDG_STATE_HOME/netfold."
        ),
    ] = None,
    stored_fabric: Annotated[
        bool,
        typer.Option(
            "--stored-fabric", help="Run the fabric of the state, also where FABRIC has been edited since."
        ),
    ] = False,
    first_grpc_port: Annotated[
        int, typer.Option(help="P4Runtime port of the first switch.")
    ] = FIRST_GRPC_PORT,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every step.")] = False,
) -> None:
    """Control the switches of a fabric until interrupted. A second controller with the same --state is the standby: on
    this machine with a file, and on any with etcd. SIGHUP reads the certificate and the files of tokens again.

    Exit codes: 0 stopped, 1 its event loop stood still, 2 bad fabric or option, 4 the state, the address or the
    recording cannot be used.
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    log_state_changes_only()
    errors = Console(stderr=True)
    try:
        known = load_fabric(fabric)
        files = default_state(known.name)
        if state is None:
            errors.print(f"netfold controller: state in {files}", soft_wrap=True)
        engine = engine_of(files if state is None else state)
        if isinstance(engine, FileEngine):
            files = engine.path
        credentials = service.credentials()

        def equip(fabric: Fabric) -> tuple[Fabric, DaemonOptions]:
            lanes, devices = program.devices(fabric)
            fabric = fabric.in_one_pipe(programs(fabric, devices))
            own = Options(
                packet_model=PacketModel(
                    lanes,
                    packet_model.scale,
                    packet_model.host_rtt_ms / 1000,
                    min_rto_margin_s=packet_model.min_rto_ms / 1000,
                ),
                pipeline=program.pipeline(fabric, lanes, devices),
                timeouts=ControllerTimeouts(restart=timing.switch_restart_timeout_s),
                fleet=FleetOptions(timing.audit_s, timing.counter_poll_s, timing.rpc_timeout_s),
                probe_s=timing.probe_s,
            )
            return fabric, DaemonOptions(
                engine=engine,
                files=files,
                listen=service.listen or default_socket(),
                credentials=credentials,
                controller=own,
                first_grpc_port=first_grpc_port,
                metrics_port=service.metrics_port,
                metrics_descriptor=service.metrics_descriptor,
                record=service.record,
                watchdog_s=timing.watchdog_s,
                has_stored_fabric=stored_fabric,
                devices=devices,
            )

        asyncio.run(
            run(known, equip, lambda what: errors.print(f"netfold controller: {what}", soft_wrap=True))
        )
    except FabricError as error:
        fail(BAD_INPUT, str(error))
    except (StoreError, ListenError, RecordingError) as error:
        fail(NO_CONTROLLER, str(error))


def default_state(fabric: str) -> Path:
    """Independent of the working directory: with another store the controller would replace the switches' entries and
    clear their registers. Networks of one fabric and different names have stores of their own."""
    name = default_name()
    file = f"{fabric}.db" if name == DEFAULT_NAME else f"{name}-{fabric}.db"
    if is_root():
        return Path("/var/lib/netfold") / file
    own = os.environ.get("XDG_STATE_HOME")
    return (Path(own) if own else Path.home() / ".local" / "state") / "netfold" / file
