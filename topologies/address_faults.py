# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the addresses, prefixes, loopbacks and device ids that a fabric gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Protocol

from netfold.topologies.faults import Fault


class HostNumbers(Protocol):
    """A host, as far as it has a number."""

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> IPv4Address | None: ...


class SwitchNumbers(Protocol):
    """A switch, as far as it has numbers."""

    @property
    def name(self) -> str: ...

    @property
    def prefix(self) -> IPv4Network | None: ...

    @property
    def loopback(self) -> IPv4Address | None: ...

    @property
    def device_id(self) -> int | None: ...


class NumberedFabric(Protocol):
    """The part of a fabric that has numbers."""

    @property
    def hosts(self) -> Sequence[HostNumbers]: ...

    @property
    def switches(self) -> Sequence[SwitchNumbers]: ...

    def attachment(self, host: str) -> str: ...


def gateway_of(prefix: IPv4Network) -> IPv4Address:
    """The address of a rack's switch in the rack's prefix."""
    return prefix[-2]


def number_faults(fabric: NumberedFabric) -> Iterator[Fault]:
    """The errors of the numbers that a fabric gives, each with its place."""
    faults = [*_prefix_faults(fabric)]
    yield from faults
    if not faults:
        yield from _address_faults(fabric)
    yield from _repeated((("switches", s.name, "device_id"), s.device_id) for s in fabric.switches)


def _prefix_faults(fabric: NumberedFabric) -> Iterator[Fault]:
    given = [(s.prefix, s.name) for s in fabric.switches if s.prefix is not None]
    for prefix, name in given:
        if prefix.prefixlen > 29 or prefix.prefixlen < 8 or not _is_unicast(prefix[1]):
            yield Fault(
                ("switches", name, "prefix"),
                f"'{name}' has prefix {prefix}; expected unicast addresses, from /8 to /29",
            )
    given.sort()
    last: tuple[IPv4Network, str] | None = None
    for prefix, name in given:
        if last is not None and prefix.overlaps(last[0]):
            yield Fault(
                ("switches", name, "prefix"),
                f"prefix {prefix} of '{name}' overlaps with {last[0]} of '{last[1]}'",
            )
        if last is None or prefix.broadcast_address > last[0].broadcast_address:
            last = prefix, name


def _address_faults(fabric: NumberedFabric) -> Iterator[Fault]:
    loopbacks = [(("switches", s.name, "loopback"), s.loopback) for s in fabric.switches]
    hosts = [(("hosts", h.name, "address"), h.address) for h in fabric.hosts]
    yield from _repeated([*loopbacks, *hosts])
    for place, ip in (*loopbacks, *hosts):
        if ip is not None and not _is_unicast(ip):
            yield Fault(place, f"'{place[1]}' has {place[2]} {ip}; expected a unicast address")
    prefixes = {s.name: s.prefix for s in fabric.switches}
    for host in fabric.hosts:
        prefix = prefixes[rack := fabric.attachment(host.name)]
        if host.address is None or prefix is None:
            continue
        here = ("hosts", host.name, "address")
        if host.address not in prefix:
            yield Fault(
                here,
                f"address {host.address} of '{host.name}' is outside of {prefix}, the prefix of '{rack}'",
            )
        elif host.address in (prefix[0], prefix[-1], gateway_of(prefix)):
            yield Fault(
                here,
                f"address {host.address} of '{host.name}' is the network's, the gateway's or the broadcast of {prefix}",
            )
    yield from _inside(fabric)


def _inside(fabric: NumberedFabric) -> Iterator[Fault]:
    """Loopbacks in a prefix, where hosts would look for them by ARP."""
    lengths = {s.prefix.prefixlen for s in fabric.switches if s.prefix is not None}
    owners = {s.prefix: s.name for s in fabric.switches if s.prefix is not None}
    for s in fabric.switches:
        for length in lengths if s.loopback is not None else ():
            around = IPv4Network((s.loopback, length), strict=False)
            if around in owners:
                yield Fault(
                    ("switches", s.name, "loopback"),
                    f"loopback {s.loopback} of '{s.name}' lies in {around}, the prefix of '{owners[around]}'",
                )


def _repeated(values: Iterable[tuple[tuple[str, ...], Any]]) -> Iterator[Fault]:
    first: dict[Any, str] = {}
    for place, value in values:
        if value is None:
            continue
        if value in first:
            what = place[2].replace("_", " ")
            yield Fault(place, f"{what} {value} of '{place[1]}' is already that of '{first[value]}'")
        first.setdefault(value, place[1])


def _is_unicast(ip: IPv4Address) -> bool:
    return not (ip.is_multicast or ip.is_loopback or ip.is_reserved or ip.is_unspecified or ip.packed[0] == 0)
