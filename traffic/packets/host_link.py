# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A host's end of a link in a process that has no network interface: an inherited Unix datagram socket, one Ethernet
frame a datagram (traffic/engine/io/link.c). $NETFOLD_LINK describes it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from typing import Self

from netfold.protocol.environment import Variable
from netfold.traffic.packets.transport import TransportError


@dataclass(frozen=True)
class HostLink:
    """`descriptor`: the socket; `address`: IPv4 of the host; `gateway_mac`: of the switch; `rate_bps`: on the wire,
    above 0."""

    descriptor: int
    address: str
    mac: str
    gateway_mac: str
    rate_bps: float

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self | None:
        """None without $NETFOLD_LINK. Raises TransportError."""
        text = environment.get(Variable.LINK)
        if not text:
            return None
        try:
            link = cls(**json.loads(text))
            _ = link.address_number, link.mac_number, link.gateway_mac_number, os.fstat(link.descriptor)
        except (ValueError, TypeError, OSError) as error:
            raise TransportError(f"NETFOLD_LINK is '{text}': {error}") from error
        return link

    def environment(self) -> dict[str, str]:
        """The variable for a process that inherits the descriptor."""
        return {Variable.LINK: json.dumps(asdict(self))}

    @property
    def address_number(self) -> int:
        return int(IPv4Address(self.address))

    @property
    def mac_number(self) -> int:
        return _mac_number(self.mac)

    @property
    def gateway_mac_number(self) -> int:
        return _mac_number(self.gateway_mac)


def _mac_number(text: str) -> int:
    raw = bytes.fromhex(text.replace(":", ""))
    if len(raw) != 6:
        raise ValueError(f"'{text}' is no MAC address")
    return int.from_bytes(raw, "big")
