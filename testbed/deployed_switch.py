# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks a server that `netfold deploy switch` has set up, as it is after a boot. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from netfold.controller.operator.server_cards import VFIO, ServerMachine, format_processors
from netfold.controller.operator.server_files import (
    OFFLOADS,
    SWITCH_RECORD,
    USER,
    SwitchNode,
    read_record,
    switch_files,
)
from netfold.controller.operator.server_plan import PortKind, ServerError, ServerPort
from netfold.testbed.doctor import Finding, Need

_GROUP = "/sys/fs/cgroup/system.slice/netfold-switch.service/cgroup.procs"
_RIGHTS = 1 << 12 | 1 << 13  # CAP_NET_ADMIN, CAP_NET_RAW
_RESTART = "systemctl restart netfold-switch; journalctl -u netfold-switch names what a card lacks"
_IS_UP = 1  # IFF_UP


def examine_switch(machine: ServerMachine) -> list[Finding]:
    """A finding is missing where the server is not as deployed. Raises ServerError where no switch is deployed."""
    text = machine.text(str(SWITCH_RECORD))
    if text is None:
        raise ServerError(
            f"{machine.root / SWITCH_RECORD.relative_to('/')}: no switch is deployed on this server"
        )
    node = read_record(text)
    found = [_files(machine, node)]
    for number, port in enumerate(node.ports, 1):
        found += _port(machine, node, f"port {number} ({port.name})", port)
    found += [_huge_pages(machine, numa, pages) for numa, pages in node.huge_pages.items()]
    if node.processors:
        found.append(_balancer(machine))
    return [*found, *_process(machine, node)]


def switch_verdict(findings: Sequence[Finding]) -> str:
    """Whether the switch is as deployed, in a sentence."""
    wrong = [finding.name for finding in findings if not finding.ok]
    costs = sum(finding.ok and finding.found is None for finding in findings)
    if wrong:
        return f"Not as deployed: {', '.join(wrong)}."
    return f"As deployed. {costs} setting{'' if costs == 1 else 's'} cost{'s' if costs == 1 else ''} speed."


def _finding(name: str, found: str | None, problem: str) -> Finding:
    return Finding(name, Need.REQUIRED, "as deployed", found, problem)


def _optional(name: str, found: str | None, problem: str) -> Finding:
    return Finding(name, Need.OPTIONAL, "works, and costs", found, problem)


def _files(machine: ServerMachine, node: SwitchNode) -> Finding:
    changed = [
        str(file.path) for file in switch_files(node) if machine.text(str(file.path)) != file.text.strip()
    ]
    return _finding(
        "files",
        None if changed else "as written",
        f"changed: {', '.join(changed)}: netfold deploy switch --out /",
    )


def _port(machine: ServerMachine, node: SwitchNode, name: str, port: ServerPort) -> Iterator[Finding]:
    if port.leaves_kernel:
        yield from _vfio(machine, name, port.card.pci)
        return
    folder = f"/sys/class/net/{port.name}"
    mtu = machine.number(f"{folder}/mtu")
    if mtu is None:
        yield _finding(name, None, f"no such interface: expected one of {', '.join(machine.interfaces())}")
        return
    is_up = int(machine.text(f"{folder}/flags") or "0", 16) & _IS_UP and machine.number(f"{folder}/carrier")
    yield _finding(f"{name}: link", "up" if is_up else None, f"down: its cable, or {_RESTART}")
    yield _finding(
        f"{name}: MTU", str(mtu) if mtu == node.mtu else None, f"{mtu}, expected {node.mtu}: {_RESTART}"
    )
    yield _no_addresses(machine, name, port.name)
    if port.kind is PortKind.DPDK:
        return
    queues = machine.card(port.name).queues
    check = _finding if port.kind is PortKind.XDP else _optional
    yield check(
        f"{name}: queues",
        str(queues) if queues == node.threads else None,
        f"{queues}, expected {node.threads}: ethtool -L {port.name} combined {node.threads}",
    )
    if port.kind is PortKind.PACKET:
        yield _offloads(machine, name, port.name)
    if node.processors and (away := _interrupts_elsewhere(machine, node, port.name)) is not None:
        yield _optional(
            f"{name}: interrupts",
            None if away else "at the switch's processors",
            f"{', '.join(away)} elsewhere: {_RESTART}",
        )


def _vfio(machine: ServerMachine, name: str, pci: str) -> Iterator[Finding]:
    folder = f"/sys/bus/pci/devices/{pci}"
    driver = machine.target(f"{folder}/driver")
    yield _finding(f"{name}: driver", driver if driver == VFIO else None, f"{driver or 'none'}: {_RESTART}")
    node = machine.root / "dev/vfio" / (machine.target(f"{folder}/iommu_group") or "-")
    try:
        owner: str | None = node.owner()
    except (OSError, KeyError):
        owner = None
    yield _finding(
        f"{name}: IOMMU",
        f"{node} of {owner}" if owner == USER else None,
        f"{node} is not {USER}'s: {_RESTART}; intel_iommu=on iommu=pt as kernel parameters",
    )


def _no_addresses(machine: ServerMachine, name: str, interface: str) -> Finding:
    shown = machine.run("ip", "-o", "address", "show", "dev", interface) or ""
    addresses = [line.split()[3] for line in shown.splitlines() if len(line.split()) > 3]
    return _finding(
        f"{name}: addresses",
        None if addresses else "none",
        f"{', '.join(addresses)}: expected none: make the machine's network manager leave the interface alone",
    )


def _offloads(machine: ServerMachine, name: str, interface: str) -> Finding:
    lines = (machine.run("ethtool", "-k", interface) or "").splitlines()
    values = dict(line.strip().split(": ", 1) for line in lines if ": " in line)
    off = [shown for shown in OFFLOADS.values() if not values.get(shown, "off").startswith("on")]
    return _optional(f"{name}: offloads", None if off else "on", f"off: {', '.join(off)}")


def _interrupts_elsewhere(machine: ServerMachine, node: SwitchNode, interface: str) -> list[str] | None:
    """None for a card that has none."""
    folder = f"/sys/class/net/{interface}/device"
    numbers = machine.names(f"{folder}/msi_irqs") or machine.names(f"{folder}/../msi_irqs")
    places = {number: machine.processors(f"/proc/irq/{number}/smp_affinity_list") for number in numbers}
    away = [number for number, place in places.items() if not set(place) <= set(node.processors)]
    return away if numbers else None


def _huge_pages(machine: ServerMachine, numa: int, pages: int) -> Finding:
    present = machine.number(f"{machine.huge_pages_folder(numa)}/nr_hugepages") or 0
    return _finding(
        f"huge pages of node {numa}",
        str(present) if present >= pages else None,
        f"{present} of {pages}: memory is in pieces: restart the server, or hugepages={pages} as a kernel parameter",
    )


def _balancer(machine: ServerMachine) -> Finding:
    is_running = "irqbalance" in _names(machine)
    return _optional(
        "irqbalance",
        None if is_running else "stopped",
        "it moves the cards' interrupts: systemctl stop irqbalance",
    )


def _names(machine: ServerMachine) -> Iterable[str]:
    processes = (name for name in machine.names("/proc") if name.isdecimal())
    return {machine.text(f"/proc/{number}/comm") or "" for number in processes}


def _process(machine: ServerMachine, node: SwitchNode) -> Iterator[Finding]:
    number = (machine.text(_GROUP) or "").partition("\n")[0]
    values = machine.status(number) if number else {}
    if not values:
        yield _finding("switch", None, "it does not run: systemctl status netfold-switch")
        return
    user, rights = values.get("Uid", "0").split()[0], int(values.get("CapEff", "-1"), 16)
    is_bounded = user != "0" and rights >= 0 and not rights & ~_RIGHTS
    yield _finding(
        "switch: rights",
        f"user {user}, capabilities {rights:x}" if is_bounded else None,
        f"user {user}, capabilities {rights:x}: expected {USER} with {_RIGHTS:x}: {_RESTART}",
    )
    is_served = machine.is_served(node.address)
    yield _finding(
        "switch: P4Runtime",
        node.address if is_served else None,
        f"nothing listens at {node.address}: wait for the compiler, or journalctl -u netfold-switch",
    )
    if not node.processors:
        return
    expected, allowed = format_processors(node.processors), values.get("Cpus_allowed_list", "")
    yield _finding(
        "switch: processors",
        allowed if allowed == expected else None,
        f"{allowed}, expected {expected}: {_RESTART}",
    )
    first = machine.status("1").get("Cpus_allowed_list", "")
    yield _optional(
        "other processes",
        first if first == format_processors(node.others) else None,
        f"at {first}, expected {format_processors(node.others)}: restart the server once after the deployment",
    )
