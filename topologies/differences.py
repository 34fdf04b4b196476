# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Differences between two fabrics, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netfold.topologies.fabric import Fabric, Host, Link, Switch


@dataclass(frozen=True)
class Difference:
    """A difference of one element: a switch or host, or the link between `element` and `end`; "" for the whole fabric.

    text   such as "comes", "goes", or "rate 100 -> 50"
    takes  whether the element gives less than before, or has another number: what uses it cannot stay as it is
    """

    element: str
    text: str
    takes: bool = False
    end: str = ""

    @property
    def name(self) -> str:
        return f"{self.element}-{self.end}" if self.end else self.element

    def __str__(self) -> str:
        return f"{self.name or 'the fabric'}: {self.text}"

    @property
    def link(self) -> frozenset[str]:
        """The ends of the link; empty for other elements."""
        return frozenset((self.element, self.end)) if self.end else frozenset()


def differences(old: Fabric, new: Fabric) -> list[Difference]:
    """The differences between fabrics that have all their numbers (address_assignment.py). Orders do not count."""
    return [*_whole(old, new), *_switches(old, new), *_hosts(old, new), *_links(old, new)]


def _whole(old: Fabric, new: Fabric) -> Iterator[Difference]:
    if old.name != new.name:
        yield Difference("", f"name {old.name} -> {new.name}", takes=True)
    if old.unit != new.unit:
        yield Difference("", f"unit {old.unit.name} -> {new.unit.name}", takes=True)


def _switches(old: Fabric, new: Fabric) -> Iterator[Difference]:
    before, after = ({s.name: s for s in f.switches} for f in (old, new))
    yield from _members(before, after)
    for name in before.keys() & after.keys():
        yield from _switch(before[name], after[name])


def _hosts(old: Fabric, new: Fabric) -> Iterator[Difference]:
    before, after = ({h.name: h for h in f.hosts} for f in (old, new))
    yield from _members(before, after)
    for name in before.keys() & after.keys():
        yield from _host(before[name], after[name])


def _members(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[Difference]:
    yield from (Difference(name, "goes", takes=True) for name in before if name not in after)
    yield from (Difference(name, "comes") for name in after if name not in before)


def _switch(old: Switch, new: Switch) -> Iterator[Difference]:
    if old.role != new.role:
        yield _changed(old.name, "role", old.role, new.role, takes=False)
    yield from _amount(old.name, "capacity", old.capacity, new.capacity)
    yield from _amount(old.name, "slots", old.slots, new.slots)
    yield from _amount(old.name, "children", old.max_children, new.max_children)
    for what in ("chip", "loopbacks", "prefix", "loopback", "device_id"):
        before, after = getattr(old, what), getattr(new, what)
        if before != after:
            is_first = what == "prefix" and before is None  # the first hosts come
            yield _changed(old.name, what.replace("_", " "), before, after, takes=not is_first)
    ports = dict(new.ports)
    for near, number in old.ports:
        if ports.get(near, number) != number:
            yield Difference(old.name, f"port {number} -> {ports[near]}", takes=True, end=near)


def _host(old: Host, new: Host) -> Iterator[Difference]:
    if old.parameter_server != new.parameter_server:
        text = "is a parameter server" if new.parameter_server else "is no parameter server any more"
        yield Difference(old.name, text, takes=old.parameter_server)
    if old.capacity != new.capacity:
        shrinks = new.capacity is not None and (old.capacity is None or new.capacity < old.capacity)
        yield _changed(old.name, "capacity", old.capacity, new.capacity, takes=shrinks)
    if old.address != new.address:
        yield _changed(old.name, "address", old.address, new.address, takes=True)


def _links(old: Fabric, new: Fabric) -> Iterator[Difference]:
    before, after = ({frozenset((k.a, k.b)): k for k in f.links} for f in (old, new))
    yield from (Difference(k.a, "goes", True, k.b) for ends, k in before.items() if ends not in after)
    yield from (Difference(k.a, "comes", False, k.b) for ends, k in after.items() if ends not in before)
    for ends in before.keys() & after.keys():
        yield from _link(before[ends], after[ends])


def _link(old: Link, new: Link) -> Iterator[Difference]:
    yield from _amount(old.a, "rate", old.rate, new.rate, old.b)
    if old.queue != new.queue:
        yield _changed(old.a, "queue", old.queue, new.queue, takes=False, end=old.b)
    if old.delay_ms != new.delay_ms:
        yield _changed(old.a, "delay_ms", old.delay_ms, new.delay_ms, takes=False, end=old.b)


def _amount(element: str, what: str, old: float, new: float, end: str = "") -> Iterator[Difference]:
    if old != new:
        yield _changed(element, what, f"{old:g}", f"{new:g}", takes=new < old, end=end)


def _changed(element: str, what: str, old: object, new: object, *, takes: bool, end: str = "") -> Difference:
    return Difference(element, f"{what} {old} -> {new}", takes, end)
