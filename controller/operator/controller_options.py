# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Options of `netfold controller run`, by what they configure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from netfold.controller.operator.controller_client import BAD_INPUT, fail
from netfold.controller.service.security import Credentials, SecurityFileError, SecurityFiles
from netfold.controller.service.watchdog import WATCHDOG_S
from netfold.controller.switches.devicefile import read_devices
from netfold.controller.switches.devices import V1MODEL_LANES, Device, best_lanes
from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.programs import lanes_for, program_for
from netfold.controller.switches.session import RPC_TIMEOUT_S
from netfold.p4src.manifest import Form
from netfold.protocol.environment import Variable
from netfold.topologies.fabric import Fabric, FabricError, Switch

LONGEST_S = 86400.0
"""Upper limit of every interval and timeout: infinity is none."""


@dataclass(frozen=True)
class ServiceOptions:
    """Where operators and members reach the controller, and what else it serves."""

    PANEL = "Service"

    listen: Annotated[
        str | None,
        typer.Option(help="unix:PATH, or HOST:PORT with TLS; default: the default socket."),
    ] = None
    metrics_port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            help="Port of the Prometheus endpoint on 127.0.0.1; 0 disables it.",
        ),
    ] = 0
    metrics_descriptor: Annotated[
        int | None,
        typer.Option(
            envvar=Variable.METRICS_DESCRIPTOR,
            help="Descriptor of a socket that listens at --metrics-port.",
            hidden=True,
        ),
    ] = None
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Record to this file, for `netfold replay`."),
    ] = None
    tls_cert: Annotated[Path | None, typer.Option(help="Server certificate (PEM).")] = None
    tls_key: Annotated[
        Path | None,
        typer.Option(help="Private key of the server certificate (PEM)."),
    ] = None
    tokens: Annotated[
        Path | None,
        typer.Option(help="File with one operator's token per line."),
    ] = None
    member_tokens: Annotated[
        Path | None,
        typer.Option(help="File with one token per line that joins jobs, and does no more."),
    ] = None
    identities: Annotated[
        Path | None,
        typer.Option(help="File with one caller per line, as `netfold controller token` prints it."),
    ] = None

    def credentials(self) -> Credentials | None:
        """None without TLS. Bad files end the command."""
        if not any((self.tls_cert, self.tls_key, self.tokens, self.member_tokens, self.identities)):
            return None
        if self.tls_cert is None or self.tls_key is None or not (self.tokens or self.identities):
            fail(BAD_INPUT, "TCP requires --tls-cert, --tls-key, and --tokens or --identities")
        files = SecurityFiles(self.tls_cert, self.tls_key, self.tokens, self.member_tokens, self.identities)
        try:
            return Credentials(files.read(), files)
        except SecurityFileError as error:
            fail(BAD_INPUT, str(error))


@dataclass(frozen=True)
class ProgramOptions:
    """Options of the switches and of their programs."""

    PANEL = "Program"

    lanes: Annotated[
        int | None,
        typer.Option(
            help="Lanes of a packet: 32, 64, 256, or 512 where all links have an MTU of 2092; default: the maximum, up "
            "to 256, of the switches' programs.",
        ),
    ] = None
    p4info: Annotated[
        Path | None,
        typer.Option(
            help="P4Info of the program, in a folder with its manifest.json; default: the one in p4src.",
        ),
    ] = None
    program: Annotated[
        Path | None,
        typer.Option(help="Compiled program; default: the one in p4src."),
    ] = None
    form: Annotated[
        Form | None,
        typer.Option(
            help="Form of the program in p4src: v1model, or bmv2, which BMv2 runs faster; default: that of the "
            "network's switches.",
        ),
    ] = None
    switches: Annotated[
        Path | None,
        typer.Option(
            help="File with the target and address of each switch (docs/how-to/tofino.md).",
        ),
    ] = None

    def devices(self, fabric: Fabric) -> tuple[int, dict[str, Device]]:
        """Lanes of a packet, and the devices of the file that --switches names. Raises FabricError."""
        found = self._read_devices(fabric, self.lanes or V1MODEL_LANES)
        if self.lanes is not None:
            return self.lanes, found
        lanes = best_lanes(fabric, found)
        if self.p4info is None:
            lanes = lanes_for(_without_own(fabric, found), lanes)
        return lanes, self._read_devices(fabric, lanes)

    def _read_devices(self, fabric: Fabric, lanes: int) -> dict[str, Device]:
        return {} if self.switches is None else read_devices(self.switches, fabric, lanes)

    def pipeline(self, fabric: Fabric, lanes: int, devices: Mapping[str, Device]) -> Pipeline:
        """The program of switches without one of their own. Raises FabricError if its file is missing, or no program
        has the lanes or takes the children that the fabric's file says."""
        if self.p4info is not None and self.program is not None:
            chosen = Pipeline(self.p4info, self.program)
        else:
            form = self.form or Form.V1MODEL
            known = program_for(_without_own(fabric, devices), lanes, form=form)
            chosen = Pipeline(self.p4info or known.p4info, self.program or known.blob)
        for path in (chosen.p4info, chosen.blob):
            if not path.is_file():
                raise FabricError(f"{path} is missing; expected a compiled program with its P4Info")
        return chosen


def _without_own(fabric: Fabric, devices: Mapping[str, Device]) -> list[Switch]:
    """Switches that run the program of all switches."""
    return [s for s in fabric.switches if devices.get(s.name, Device()).pipeline is None]


@dataclass(frozen=True)
class TimingOptions:
    """How often switches and links are polled, and how long they and the controller may be silent."""

    PANEL = "Timing"

    audit_s: Annotated[
        float,
        typer.Option(
            "--audit-interval", min=0.1, max=LONGEST_S, help="Seconds between two audits of a switch."
        ),
    ] = 30.0
    counter_poll_s: Annotated[
        float,
        typer.Option(
            "--counter-interval",
            min=0.1,
            max=LONGEST_S,
            help="Seconds between two readings of the port counters of a switch.",
        ),
    ] = 1.0
    rpc_timeout_s: Annotated[
        float,
        typer.Option(
            "--rpc-timeout",
            min=0.1,
            max=LONGEST_S,
            help="Timeout of an RPC to a switch, in seconds; 6 times that for a pipeline push.",
        ),
    ] = RPC_TIMEOUT_S
    probe_s: Annotated[
        float,
        typer.Option(
            "--probe-interval",
            min=0.0,
            max=LONGEST_S,
            help="Seconds between two probes of a link; 0: no probes.",
        ),
    ] = 0.3
    switch_restart_timeout_s: Annotated[
        float,
        typer.Option(
            "--switch-restart-timeout",
            min=0.5,
            max=LONGEST_S,
            help="Seconds that a switch may take no connections, or a link be down, before jobs without another "
            "plan fail.",
        ),
    ] = 8.0
    watchdog_s: Annotated[
        float,
        typer.Option(
            "--watchdog-timeout",
            min=0.0,
            max=LONGEST_S,
            help="Seconds that the event loop may stand still before the controller ends; 0: no limit.",
        ),
    ] = WATCHDOG_S


@dataclass(frozen=True)
class PacketModelOptions:
    """Model of packets on the links of the fabric's file."""

    PANEL = "Packet model"

    scale: Annotated[
        float,
        typer.Option(
            min=1e-9,
            max=1e15,
            help="Rate on the wire per rate in the fabric file.",
        ),
    ] = 1.0
    host_rtt_ms: Annotated[
        float,
        typer.Option(min=0.001, max=1e6, help="RTT in ms without the links' delays."),
    ] = 2.0
    min_rto_ms: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1e6,
            help="Least time in ms beyond the RTT after which a worker retransmits; 0: that of the switches' target.",
        ),
    ] = 0.0
