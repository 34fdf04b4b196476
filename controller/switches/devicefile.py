# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the file of `netfold controller run --switches FILE`: target, address, program and TLS of each switch.

    defaults: {target: tofino, p4info: out/tofino/tofino/netfold.p4info.txtpb, config: out/tofino/tofino/netfold.pb.bin}
    switches:
      leaf1: {address: 10.0.0.11:9339, device_id: 1}
      leaf2: {address: 10.0.0.12:9339, device_id: 1, cpu_port: 320}
      leaf3: {address: 10.0.0.13:9559, server: drivers, config: out/tofino/tofino/netfold.pi.bin}

Connections are plain text, or TLS where `tls_ca` names the CA of the switch's certificate. `tls_cert` and `tls_key` are
the controller's, `tls_server_name` is the name in the switch's certificate. Switches that are not listed have
`defaults`. Paths are relative to the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from netfold.controller.switches.devices import (
    TOFINO_CPU_PORTS,
    Device,
    SwitchTarget,
    TofinoServer,
    packet_cells,
)
from netfold.controller.switches.endpoint import Pipeline, Tls
from netfold.controller.switches.tables import CPU_PORT
from netfold.topologies.fabric import Fabric, Switch
from netfold.topologies.faults import Place
from netfold.topologies.model_errors import model_problems
from netfold.topologies.yaml_locations import SpecError, read_document

LAST_CPU_PORT = 511
_ADDRESS, _ADDRESS_FORM = r"^(\S+:[0-9]{1,5}|unix:\S+)$", "HOST:PORT or unix:PATH of P4Runtime"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DeviceSpec(_Part):
    """The options of a switch, or the defaults."""

    target: SwitchTarget | None = None
    address: Annotated[
        str | None,
        Field(pattern=_ADDRESS, description=_ADDRESS_FORM),
    ] = None
    server: Annotated[
        TofinoServer | None, Field(description="P4Runtime server of a tofino: stratum or drivers")
    ] = None
    device_id: Annotated[int | None, Field(ge=0, lt=1 << 64, description="Stratum's node id")] = None
    p4info: Path | None = None
    config: Annotated[Path | None, Field(description="device config of a pipeline push")] = None
    cpu_port: Annotated[int | None, Field(ge=0, le=LAST_CPU_PORT)] = None
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_server_name: str | None = None


class DeviceFile(_Part):
    defaults: DeviceSpec = DeviceSpec()
    switches: dict[str, DeviceSpec] = {}


def read_devices(path: Path, fabric: Fabric, lanes: int) -> dict[str, Device]:
    """The device of every switch of the fabric. Raises FabricError; a SpecError names file and line."""
    document = read_document(path)
    try:
        spec = DeviceFile.model_validate(document.value)
    except ValidationError as error:
        raise SpecError(
            document.file, list(model_problems(document, DeviceFile, error, {_ADDRESS: _ADDRESS_FORM}))
        ) from None
    problems = [
        document.problem(
            ("switches", name), f"'{name}' is no switch of fabric '{fabric.name}'; it has {_names(fabric)}"
        )
        for name in spec.switches
        if name not in {s.name for s in fabric.switches}
    ]
    devices: dict[str, Device] = {}
    for switch in fabric.switches:
        own = spec.switches.get(switch.name, DeviceSpec())
        merged = spec.defaults.model_copy(update=own.model_dump(exclude_none=True))
        faults = list(_faults(fabric, switch, merged, path.parent))
        problems += [document.problem(_place(spec, switch.name, key), message) for key, message in faults]
        if not faults:
            devices[switch.name] = _device(switch, merged, path.parent, lanes)
    if problems:
        raise SpecError(document.file, problems)
    return devices


def _device(switch: Switch, spec: DeviceSpec, folder: Path, lanes: int) -> Device:
    pipeline = None
    if spec.p4info is not None and spec.config is not None:
        pipeline = Pipeline(folder / spec.p4info, folder / spec.config)
    if spec.target is not SwitchTarget.TOFINO:
        cpu_port = CPU_PORT if spec.cpu_port is None else spec.cpu_port
        return Device(
            SwitchTarget.V1MODEL, spec.address, spec.device_id, pipeline, cpu_port, tls=_tls(spec, folder)
        )
    assert switch.chip is not None
    cpu_port = TOFINO_CPU_PORTS[switch.chip] if spec.cpu_port is None else spec.cpu_port
    cells = packet_cells(switch.chip, lanes)
    server = spec.server or TofinoServer.STRATUM
    # Stratum numbers the nodes of a box; there is one, and its configs call it 1. The drivers' first device is 0.
    first = 1 if server is TofinoServer.STRATUM else 0
    own = first if spec.device_id is None else spec.device_id
    return Device(
        SwitchTarget.TOFINO, spec.address, own, pipeline, cpu_port, cells, _tls(spec, folder), server
    )


def _tls(spec: DeviceSpec, folder: Path) -> Tls | None:
    if spec.tls_ca is None:
        return None
    cert = None if spec.tls_cert is None else folder / spec.tls_cert
    key = None if spec.tls_key is None else folder / spec.tls_key
    return Tls(folder / spec.tls_ca, cert, key, spec.tls_server_name or "")


def _faults(fabric: Fabric, switch: Switch, spec: DeviceSpec, folder: Path) -> Iterator[tuple[str, str]]:
    """Key and message of each invalid option of a switch."""
    name = switch.name
    if (spec.p4info is None) != (spec.config is None):
        yield "", f"'{name}' needs both of p4info and config, or none"
    if (spec.tls_cert is None) != (spec.tls_key is None):
        yield "", f"'{name}' needs both of tls_cert and tls_key, or none"
    if spec.tls_ca is None and (spec.tls_cert is not None or spec.tls_server_name is not None):
        yield (
            "",
            f"'{name}' needs tls_ca in addition to its other tls options: without it the connection is plain text",
        )
    for key in ("p4info", "config", "tls_ca", "tls_cert", "tls_key"):
        path = getattr(spec, key)
        if path is not None and not (folder / path).is_file():
            yield key, f"the {key} of '{name}' is missing: {folder / path}"
    cpu_port = spec.cpu_port
    if spec.target is SwitchTarget.TOFINO:
        if switch.chip is None:
            yield "target", f"'{name}' has no 'chip' in fabric '{fabric.name}': tofino or tofino2"
        elif cpu_port is None:
            cpu_port = TOFINO_CPU_PORTS[switch.chip]
        for key in ("address", "config"):
            if getattr(spec, key) is None:
                yield "", f"'{name}' is a tofino and needs '{key}'"
    elif spec.server is not None:
        yield "server", f"'{name}' has a 'server', which is for the target tofino"
    if spec.device_id == 0 and spec.target is SwitchTarget.TOFINO and spec.server is not TofinoServer.DRIVERS:
        yield "device_id", f"the device_id of '{name}' must be 1 or more: Stratum counts nodes from 1"
    if cpu_port in {*fabric.ports[name].values(), *(x.port for x in switch.loopbacks)}:
        yield (
            "cpu_port",
            f"port {cpu_port} of '{name}' is the controller's; the fabric has a link or loopback there",
        )


def _place(spec: DeviceFile, name: str, key: str) -> Place:
    """Position of a key of a switch in the file: at the switch, or in the defaults."""
    own = spec.switches.get(name)
    if key and getattr(own, key, None) is None and getattr(spec.defaults, key) is not None:
        return ("defaults", key)
    return ("switches", name, key) if own is not None else ("defaults",)


def _names(fabric: Fabric) -> str:
    names = [s.name for s in fabric.switches]
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
