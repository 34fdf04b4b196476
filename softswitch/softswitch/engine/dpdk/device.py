# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The names of DPDK's devices on the command line and the control socket (`dpdk:NAME[,KEY=VALUE]...`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from softswitch.engine import xdp
from softswitch.errors import SwitchError

PREFIX = "dpdk:"
NAME_MAX = 15
MTU_MIN, MTU_MAX = 68, 16000
_PCI = re.compile(r"[0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_VIRTUAL = re.compile(r"net_[a-z0-9_]+")
_ARGUMENT = re.compile(r"[a-z0-9_-]+=[!-+\--<>-~]*")
"""Without a second `=`: DPDK takes `/bus=...` inside a value for another device."""
EXAMPLES = "expected a PCI address such as 0000:3b:00.0, or a virtual device such as net_tap0,iface=tap0"


class DpdkError(SwitchError):
    """DPDK, or a device of it, cannot be used."""


@dataclass(frozen=True)
class DpdkDevice:
    """`arguments`: the name, and what DPDK's driver takes. `mtu`: 0 for the driver's usual one."""

    name: str
    arguments: str
    mtu: int

    @property
    def is_virtual(self) -> bool:
        return self.name.startswith("net_")


def is_dpdk(interface: str) -> bool:
    return interface.startswith(PREFIX)


def parse(interface: str) -> DpdkDevice:
    """Takes `mtu=BYTES` out of the arguments. Raises DpdkError."""
    name, *arguments = interface.removeprefix(PREFIX).split(",")
    if len(name) > NAME_MAX or not (_PCI.fullmatch(name) or _VIRTUAL.fullmatch(name)):
        raise DpdkError(f"{interface}: {EXAMPLES}")
    kept, mtu = [name], 0
    for argument in arguments:
        if not _ARGUMENT.fullmatch(argument):
            raise DpdkError(f"{interface}: argument {argument!r}: expected KEY=VALUE")
        key, _, value = argument.partition("=")
        if key != "mtu":
            kept.append(argument)
        elif not value.isdecimal() or not MTU_MIN <= int(value) <= MTU_MAX:
            raise DpdkError(f"{interface}: mtu={value}: expected {MTU_MIN}..{MTU_MAX}")
        else:
            mtu = int(value)
    return DpdkDevice(name, ",".join(kept), mtu)


def name_of(interface: str) -> str:
    """The name of a port's interface or device, without its kind. Raises DpdkError."""
    return parse(interface).name if is_dpdk(interface) else interface.removeprefix(xdp.PREFIX)
