# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold deploy`: the files that make a bare server a switch, a host of parameter servers, or one of the machines
that hold the controller."""

from __future__ import annotations

import ipaddress
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.etcd_client import EtcdAddress
from netfold.controller.operator.controller_files import (
    CA,
    CERT,
    CONTROLLER_INPUTS,
    CONTROLLER_UNITS,
    ETCD,
    KEY,
    STORE,
    USER,
    ControllerNode,
    controller_files,
    controller_node,
    store_address,
)
from netfold.controller.operator.server_cards import Card, ServerMachine, format_processors
from netfold.controller.operator.server_files import (
    LISTEN,
    PREFIX,
    SWITCH_RECORD,
    File,
    ParameterServerNode,
    SwitchNode,
    parameter_server_files,
    read_record,
    switch_files,
)
from netfold.controller.operator.server_plan import (
    CORES_LEFT,
    ServerError,
    ServerPort,
    choose_ports,
    choose_processors,
    estimate,
    huge_pages,
    other_processors,
    us_per_packet,
    warnings,
)
from netfold.protocol.wire import LANES_MAX, lanes_that_fit, mtu_for
from netfold.topologies.cli import BAD_INPUT, FAILED, fail

app = typer.Typer()

UNDO_S = 120
NO_OUT = "--undo: expected --out DIR, where the files are: `/` for this server"

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
    context: typer.Context,
    interface: Annotated[
        list[str] | None,
        typer.Option(
            "-i",
            "--interface",
            metavar="[xdp:|dpdk:]CARD",
            help="Port 1, 2, ...: an interface, xdp:IFACE or dpdk:PCI-ADDRESS; repeatable. Default: show the cards.",
        ),
    ] = None,
    threads: ThreadsOption = 1,
    device_id: Annotated[int, typer.Option(min=0, help="P4Runtime device id.")] = 1,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of P4Runtime.")] = "0.0.0.0:9559",
    mtu: MtuOption = 1500,
    lanes: LanesOption = 256,
    cpus: CpusOption = None,
    rate_gbps: Annotated[
        float | None,
        typer.Option(min=0.01, help="Rate of a link, for the estimate. Default: the card's now."),
    ] = None,
    us_per_packet: Annotated[
        float | None,
        typer.Option(
            min=0.01, help="Measured processor time of a packet, in and out. Default: by kind of port."
        ),
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Set the cards below --out back, and remove the files.")
    ] = False,
    out: OutOption = None,
) -> None:
    """Files of a server that is a switch: softswitch with a port on each card. Run it on that server."""
    if undo:
        _undo(out)
        return
    machine = context.obj or ServerMachine()
    if not interface:
        _show_cards(machine)
        return
    _check_mtu(interface, mtu, lanes)
    if not LISTEN.fullmatch(listen):
        fail(f"--listen {listen!r}: expected HOST:PORT or unix:PATH", BAD_INPUT)
    try:
        ports = choose_ports(machine, interface, threads, mtu)
        processors = choose_processors(machine, ports, threads, cpus)
        pages = huge_pages(machine, ports, threads, mtu)
    except ServerError as error:
        fail(str(error), BAD_INPUT)
    others = other_processors(machine, processors)
    node = SwitchNode(tuple(ports), threads, device_id, listen, mtu, tuple(processors), tuple(others), pages)
    _write(switch_files(node), out)
    for number, port in enumerate(ports, 1):
        _note(f"port {number}: {_card_text(machine, port.card)}")
    _show_rate(ports, rate_gbps, lanes, threads, us_per_packet)
    for text in warnings(machine, ports, threads, processors):
        _note(f"warning: {text}")
    if processors:
        own = format_processors(processors)
        left = f" irqaffinity={format_processors(others)}" if others else ""
        _note(
            f"kernel parameters that isolate processors {own} further: nohz_full={own} rcu_nocbs={own}{left}"
        )
    _note("systemd-sysusers && systemctl daemon-reload && systemctl enable --now netfold-switch")


def _show_cards(machine: ServerMachine) -> None:
    managed = machine.managed_by()
    cards = machine.cards()
    for card in cards:
        uses = machine.users_of(card.interface)
        use = (
            "has the default route"
            if card.interface in managed
            else f"part of {', '.join(uses)}"
            if uses
            else "free"
        )
        typer.echo(f"{_card_text(machine, card)}; {use}")
    if not cards:
        typer.echo("no network card that the kernel drives")
    typer.echo(f"processors {format_processors(machine.online())}")


def _card_text(machine: ServerMachine, card: Card) -> str:
    speed = f"{card.speed_mbps / 1000:g} Gbit/s" if card.speed_mbps else "no link"
    place = "" if card.numa_node is None else f", NUMA node {card.numa_node}"
    xdp = "zero copy" if card.has_zero_copy else "copies"
    dpdk = "beside the kernel" if card.shares_driver else "by vfio-pci" if machine.has_iommu() else "no IOMMU"
    if not card.pci:
        dpdk = "no PCI device"
    elif not machine.has_dpdk():
        dpdk = "libdpdk is not installed"
    return (
        f"{card.interface or 'no interface'}: {card.pci or 'virtual'}, driver {card.driver or 'unknown'}, "
        f"{speed}{place}, {card.queues} queues; xdp: {xdp}; dpdk: {dpdk}"
    )


def _show_rate(
    ports: Sequence[ServerPort], rate_gbps: float | None, lanes: int, threads: int, us: float | None
) -> None:
    unknown = [port.name for port in ports if not (rate_gbps or port.card.speed_mbps)]
    if unknown:
        _note(f"rate: {', '.join(unknown)} has no link now: --rate-gbps gives its rate")
        return
    rates = [rate_gbps or (port.card.speed_mbps or 0) / 1000 for port in ports]
    taken = us or us_per_packet(ports)
    found = estimate(ports, rates, lanes, threads, taken)
    source = "given" if us else "not measured on this server"
    _note(
        f"rate: {found.gbps:.3g} of {sum(rates):g} Gbit/s in packets of {lanes} lanes ({found.packets_per_s / 1e6:.3g} "
        f"M/s), bound by {found.bound}: {threads} threads, {taken:g} us a packet ({source}); the links' rate takes "
        f"{found.cores:.1f} cores, and {CORES_LEFT} for the rest"
    )


def _undo(out: Path | None) -> None:
    if out is None:
        fail(NO_OUT, BAD_INPUT)
    record = out / SWITCH_RECORD.relative_to("/")
    try:
        files = switch_files(read_record(record.read_text()))
    except FileNotFoundError:
        fail(f"{record}: no switch is deployed there", BAD_INPUT)
    except (OSError, ServerError) as error:
        fail(str(error), BAD_INPUT)
    disable = ("systemctl", "disable", "--now", "netfold-switch")
    _remove(files, out, disable, (str(files[0].path), "undo"))


def _remove(files: Sequence[File], out: Path, *before: Sequence[str]) -> None:
    """Remove files below `out`. On this server the commands `before` are run first."""
    is_here = out.resolve() == Path("/")
    for command in before if is_here else ():
        _call(*command)
    for file in files:
        target = out / file.path.relative_to("/")
        try:
            target.unlink(missing_ok=True)
        except OSError as error:
            fail(f"{target}: {error.strerror or error}", FAILED)
        _note(f"removed {target}")
    if is_here:
        _call("systemctl", "daemon-reload")


def _call(*command: str) -> None:
    try:
        done = subprocess.run(command, check=False, timeout=UNDO_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        fail(f"{' '.join(command)}: {error}", FAILED)
    if done.returncode != 0:
        fail(f"{' '.join(command)}: exit code {done.returncode}: nothing after it was undone", FAILED)


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


@app.command("controller")
def controller(
    members: Annotated[
        str, typer.Option(metavar="A,B,C", help="Names of the machines that hold the controller.")
    ] = "",
    more: Annotated[
        list[str] | None, typer.Argument(help="Further options of `netfold controller run`, after --.")
    ] = None,
    member: Annotated[
        str | None, typer.Option(metavar="NAME", help="The machine of the files. Default: this one.")
    ] = None,
    joins: Annotated[
        bool,
        typer.Option("--joins", help="Its etcd is new in a cluster that runs: the machine was replaced."),
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="End the services, and remove the files below --out.")
    ] = False,
    out: OutOption = None,
) -> None:
    """Files of one of three machines that hold the controller: services of a member of etcd and of a controller. Run it
    on each of them."""
    if undo:
        _undo_controller(out)
        return
    host = socket.gethostname()
    try:
        node = controller_node(members, member, host, more or (), joins=joins)
    except ServerError as error:
        fail(str(error), BAD_INPUT)
    _write(controller_files(node), out)
    for text in _lacks(node, out or Path("/")) if node.member == host else ():
        _note(f"warning: {text}")
    controller, etcd = CONTROLLER_UNITS
    _note(f"systemd-sysusers && systemctl daemon-reload && systemctl stop etcd {controller}")
    _note(f"systemctl enable --now {etcd}")
    if not node.joins:
        copy = f"sudo -u {USER} {PREFIX}/bin/netfold controller copy"
        _note(f"to keep the jobs of a store: {copy} FILE '{store_address(node)}'")
    _note(f"systemctl enable --now {controller}")


def _lacks(node: ControllerNode, root: Path) -> Iterator[str]:
    """Why the services would not start on this machine, the member of `node`."""
    inputs = [root / path.relative_to("/") for path in (*CONTROLLER_INPUTS, CA, CERT, KEY)]
    try:
        for file in (root / ETCD.relative_to("/"), *inputs):
            if not file.is_file():
                yield f"{file} is not there yet"
        with suppress(FileNotFoundError):
            EtcdAddress((node.member,), STORE, *inputs[-3:]).credentials()
    except StoreError as error:
        yield str(error)
    except OSError as error:
        yield f"{error.filename}: {error.strerror}: as root, this command finds what is missing"
    for name in node.members:
        try:
            address = ipaddress.ip_address(socket.gethostbyname(name))
        except OSError as error:
            yield f"{name} has no IPv4 address here: {error.strerror}"
        else:
            if address.is_loopback:
                yield f"{name} is {address} here, where no other machine reaches it: change /etc/hosts"


def _undo_controller(out: Path | None) -> None:
    if out is None:
        fail(NO_OUT, BAD_INPUT)
    files = [
        file
        for file in controller_files(ControllerNode(("",), ""))
        if (out / file.path.relative_to("/")).exists()
    ]
    units = [unit for unit in CONTROLLER_UNITS if any(f.path.name == f"{unit}.service" for f in files)]
    if len(files) == units.count(CONTROLLER_UNITS[0]):  # the controller's unit alone is not of this command
        fail(f"{out}: no controller is deployed there", BAD_INPUT)
    _remove(files, out, *([("systemctl", "disable", "--now", *units)] if units else ()))
    _note("left: certificates and tokens, and what etcd and the controller have stored below /var/lib")


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
            is_other = target.is_file() and target.read_bytes() != file.text.encode()
            target.write_text(file.text)
            target.chmod(0o755 if file.is_executable else 0o644)
        except OSError as error:
            fail(f"{target}: {error.strerror or error}", BAD_INPUT)
        _note(f"wrote {target}{', which had another text' if is_other else ''}")


def _note(text: str) -> None:
    typer.echo(text, err=True)
