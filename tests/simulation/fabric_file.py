# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The fabric's file: an operator edits it and applies it, and a fabric that a controller starts with has to be one of
them, with the numbers that its names always had."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric, FabricError, Host, Link, Switch, SwitchRole
from netfold.topologies.spec import spec_text

ASK_AGAIN_S = 1.0
"""The operator applies again, where no controller has answered."""

HARMLESS = ("host comes", "spine comes", "leaf comes", "link grows", "queue")
KINDS = (*HARMLESS, "node goes", "link shrinks", "slots")

Apply = Callable[[str, Callable[[pb.FabricChange], None]], asyncio.Task[Any]]


class FabricFile:
    """`apply` starts a task that sends a text, and does something with the answer. `complaint`: an answer that is
    wrong."""

    def __init__(self, fabric: Fabric, apply: Apply) -> None:
        self.stored = fabric
        """The fabric of which a controller has said that it is in use."""
        self.wanted: Fabric | None = None
        self.complaint = ""
        self._apply = apply
        self._call: asyncio.Task[Any] | None = None
        self._added = 0
        self._numbers: dict[object, object] = {}

    def edit(self, kind: str, where: float | str) -> Fabric | None:
        """Change the file and apply it; `where`, a name or a number in [0, 1), chooses the element. Return the new
        fabric; None if that would be none, or another one is being applied."""
        if self.wanted is not None:
            return None
        try:
            wanted = self._edited(self.stored, kind, where)
        except FabricError:
            return None
        self.replace(wanted, is_harmless=kind in HARMLESS)
        return wanted

    def replace(self, wanted: Fabric, *, is_harmless: bool) -> None:
        """Apply another file. `is_harmless`: it may not be refused."""
        self.wanted = wanted
        self._ask(wanted, is_harmless=is_harmless)

    def wrong(self, found: Fabric) -> str:
        """Name what is wrong with the fabric that a controller starts with; empty: nothing is."""
        allowed = [_document(f) for f in (self.stored, self.wanted) if f is not None]
        if _document(found) not in allowed:
            return "the controller starts with a fabric that is in no file"
        for what, number in _numbers_of(found).items():
            if self._numbers.setdefault(what, number) != number:
                return f"{what} had {self._numbers[what]}, and has {number}"
        for kind in ("address", "device id", "prefix"):
            given = [n for (k, *_), n in self._numbers.items() if k == kind]  # type: ignore[misc]
            if len(set(given)) < len(given):
                return f"two names had the same {kind}"
        return ""

    def _ask(self, wanted: Fabric, *, is_harmless: bool) -> None:
        if self.wanted is not wanted:
            return

        def answered(answer: pb.FabricChange) -> None:
            if self.wanted is wanted:
                is_refused = any(e.refusal for e in answer.elements)
                if is_refused and is_harmless:
                    self.complaint = "what only adds is refused: " + "; ".join(
                        e.refusal for e in answer.elements
                    )
                self.stored = self.stored if is_refused else wanted
                self.wanted = None

        if self._call is None or self._call.done():
            self._call = self._apply(file_text(wanted), answered)
        again = functools.partial(self._ask, wanted, is_harmless=is_harmless)
        asyncio.get_running_loop().call_later(ASK_AGAIN_S, again)

    def _edited(self, f: Fabric, kind: str, where: float | str) -> Fabric:
        """New elements come first, so that all positions change."""
        self._added += 1
        name = f"new{self._added}"
        racks = sorted({f.attachment(h.name) for h in f.hosts})
        spines = [s for s in f.switches if s.name not in racks]
        between = [k for k in f.links if not f.is_host(k.a) and not f.is_host(k.b)]
        match kind:
            case "host comes":
                links = (Link(name, _at(racks, where), 100.0), *f.links)
                return replace(f, hosts=(Host(name), *f.hosts), links=links)
            case "spine comes":
                links = (*(Link(rack, name, 100.0) for rack in racks), *f.links)
                return replace(f, switches=(replace(spines[0], name=name), *f.switches), links=links)
            case "leaf comes":
                hosts = tuple(Host(f"{name}-h{i}") for i in (1, 2))
                own = [Link(h.name, name, 100.0) for h in hosts]
                links = (*own, *(Link(name, s.name, 100.0) for s in spines), *f.links)
                leaf = Switch(name, SwitchRole.LEAF, 400.0)
                return replace(f, hosts=(*hosts, *f.hosts), switches=(leaf, *f.switches), links=links)
            case "node goes":
                return without(f, _at([e.name for e in f.elements], where))
            case "slots":
                chosen = _at(f.switches, where)
                return replace(
                    f, switches=tuple(replace(s, slots=2048) if s is chosen else s for s in f.switches)
                )
        link = _at(between, where)
        changes: dict[str, Link] = {
            "link grows": replace(link, rate=2 * link.rate),
            "link shrinks": replace(link, rate=link.rate / 2),
            "queue": replace(link, queue=link.queue + 1),
        }
        return replace(f, links=tuple(changes[kind] if k is link else k for k in f.links))


def _at(choices: Any, where: float | str) -> Any:
    if isinstance(where, str):
        names = [f"{c.a}-{c.b}" if isinstance(c, Link) else getattr(c, "name", c) for c in choices]
        return choices[names.index(where)]
    return choices[int(where * len(choices))]


def without(f: Fabric, *names: str) -> Fabric:
    """The fabric without these elements, and without the hosts of switches among them."""
    gone = {*names, *(h.name for h in f.hosts if f.attachment(h.name) in names)}
    return replace(
        f,
        hosts=tuple(h for h in f.hosts if h.name not in gone),
        switches=tuple(s for s in f.switches if s.name not in gone),
        links=tuple(k for k in f.links if not {k.a, k.b} & gone),
    )


def file_text(f: Fabric) -> str:
    """A file that gives no numbers."""
    return json.dumps(_document(f))


def _document(f: Fabric) -> Any:
    document = json.loads(spec_text(f))
    for switch in document["switches"].values():
        for number in ("prefix", "loopback", "device_id", "ports"):
            del switch[number]
    for host in document["hosts"].values():
        del host["address"]
    return document


def _numbers_of(f: Fabric) -> dict[object, object]:
    known, numbers = addresses(f), dict[object, object]()
    for name, host in known.hosts.items():
        numbers["address", name] = host.ip
    for name, switch in known.switches.items():
        numbers["address", name] = switch.loopback
        numbers["device id", name] = switch.device_id
        if switch.prefix is not None:
            numbers["prefix", name] = switch.prefix
        numbers.update({("port", name, near): port for near, port in f.ports[name].items()})
    return numbers
