# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Fabrics as YAML files. `load_fabric` reads one; `netfold fabric schema` prints the JSON Schema of a file.

    name: two-racks
    unit: Mbit/s                      # what rates and capacities count: bit/s ... Gbit/s, or none
    defaults:
      link: {rate: 100, queue: 64}
      switch: {capacity: 400}
    switches:
      s1: {role: leaf}
      s2: {role: leaf}
    hosts:
      h1: {at: s1}
      ps1: {at: s2, parameter_server: true, capacity: 80}
    links:
      - {between: [s1, s2], rate: 50}

or, in place of switches, hosts and links, `generate: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf:
4}}`. Ports count from 1: those of a switch's hosts first, then those of its `links`, both in the order of
the file; or a switch gives the number of each:

    switches:
      s1: {chip: tofino, ports: {h1: 132, s2: 4}, loopbacks: [{port: 68, rate: 100}]}

A site's own addresses are `prefix`, `loopback` and `device_id` of a switch, and `address` of a host:

    switches:
      s1: {prefix: 172.20.4.0/24, loopback: 172.20.0.1, device_id: 1}
    hosts:
      h1: {at: s1, address: 172.20.4.10}
"""

from __future__ import annotations

import json
from dataclasses import asdict
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from netfold.topologies import generators
from netfold.topologies.fabric import (
    NAME_PATTERN,
    NAME_RULE,
    Fabric,
    FabricError,
    Host,
    Link,
    Loopback,
    Switch,
    SwitchRole,
    Unit,
)
from netfold.topologies.faults import Place, hint
from netfold.topologies.model_errors import model_problems
from netfold.topologies.ports import LAST_PORT, Chip
from netfold.topologies.tutorials import Exercise, is_tutorials_form, read_exercise, tutorials_fabric
from netfold.topologies.yaml_locations import (
    MAX_BYTES,
    Document,
    SpecError,
    parse_document,
    read_document,
)

SPECS = Path(__file__).parent / "specs"

UNITS = {
    "bit/s": Unit("bit/s", 1.0),
    "kbit/s": Unit("kbit/s", 1e3),
    "Mbit/s": Unit("Mbit/s", 1e6),
    "Gbit/s": Unit("Gbit/s", 1e9),
    "none": Unit("none", 1e6),  # a pure number; on a wire it needs a scale, which then counts Mbit/s
}


def _no_truth_value(value: Any) -> Any:
    """YAML reads yes, no, on and off as truth values, which pydantic would take for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("expected a number, not a truth value")
    return value


def _address(value: Any) -> IPv4Address:
    try:
        return IPv4Address(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError("expected an IPv4 address, such as 10.1.0.4") from None


def _prefix(value: Any) -> IPv4Network:
    try:
        return IPv4Network(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError(
            "expected an IPv4 prefix, such as 10.1.4.0/24, whose bits beyond its length are 0"
        ) from None


Number = BeforeValidator(_no_truth_value)
"""Validates that a value is no truth value, before a number is made of it."""

Rate = Annotated[float, Number, Field(gt=0, allow_inf_nan=False)]
Capacity = Annotated[float, Number, Field(ge=0, allow_inf_nan=False)]
Delay = Annotated[float, Number, Field(ge=0, le=10_000)]
Queue = Annotated[int, Number, Field(ge=1, le=1_000_000)]
Slots = Annotated[int, Number, Field(ge=1, le=65_536)]
Children = Annotated[int, Number, Field(ge=2, le=65_535)]
Count = Annotated[int, Number, Field(ge=1, le=65_000)]
Port = Annotated[int, Number, Field(ge=1, le=LAST_PORT)]
Address = Annotated[IPv4Address, BeforeValidator(_address)]
Prefix = Annotated[IPv4Network, BeforeValidator(_prefix)]
DeviceId = Annotated[int, Number, Field(ge=1, le=50_000)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
MAX_GENERATED_LINKS = 250_000
"""Links of a generated fabric: a few characters may describe more than memory holds."""
UnitName = Literal["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "none"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LinkDefaults(_Part):
    rate: Rate | None = None
    queue: Queue = 64
    delay_ms: Delay = 0.0


class SwitchDefaults(_Part):
    role: SwitchRole = SwitchRole.PLAIN
    capacity: Capacity = 0.0
    slots: Slots = 4096
    children: Children | None = None
    chip: Chip | None = None


class Defaults(_Part):
    link: LinkDefaults = LinkDefaults()
    switch: SwitchDefaults = SwitchDefaults()


class LoopbackSpec(_Part):
    """A port in loopback mode, by which packets reach another pipe of the chip."""

    port: Port
    rate: Annotated[Rate | None, Field(description="else defaults.link.rate")] = None
    queue: Annotated[Queue | None, Field(description="packets")] = None


class SwitchSpec(_Part):
    """A switch; what is left out comes from `defaults.switch`."""

    role: SwitchRole | None = None
    capacity: Annotated[Capacity | None, Field(description="sum of the incoming rates it can aggregate")] = (
        None
    )
    slots: Slots | None = None
    children: Annotated[
        Children | None, Field(description="most children of a node in it; else its program's")
    ] = None
    chip: Annotated[Chip | None, Field(description="port p lies in pipe p >> 7; else all in one")] = None
    ports: Annotated[
        dict[str, Port], Field(description="port number by neighbor, of all of them; else 1, 2, ...")
    ] = {}
    loopbacks: list[LoopbackSpec] = []
    prefix: Annotated[Prefix | None, Field(description="of its hosts; else 10.R.0.0/16")] = None
    loopback: Annotated[Address | None, Field(description="its address; else 10.255.x.y")] = None
    device_id: Annotated[DeviceId | None, Field(description="of P4Runtime; else an unused one")] = None


class _LinkValues(_Part):
    rate: Annotated[Rate | None, Field(description="in each direction; else defaults.link.rate")] = None
    queue: Annotated[Queue | None, Field(description="packets")] = None
    delay_ms: Annotated[Delay | None, Field(description="one way")] = None


class HostSpec(_LinkValues):
    """A host on the switch `at`; rate, queue and delay are those of its link."""

    at: Annotated[str, Field(description="the switch it hangs on")]
    parameter_server: bool = False
    capacity: Annotated[Rate | None, Field(description="what it takes in as a parameter server")] = None
    address: Annotated[
        Address | None, Field(description="in the prefix of its switch; else an unused one")
    ] = None


class LinkSpec(_LinkValues):
    """A link between two switches."""

    between: Annotated[list[str], Field(min_length=2, max_length=2)]


class _Generated(_Part):
    parameter_servers: Annotated[
        int, Number, Field(ge=0, le=1000, description="hosts ps1, ps2, ... more")
    ] = 0
    rate: Rate = 100.0
    queue: Queue = 64
    delay_ms: Delay = 0.0
    capacity: Annotated[Capacity | None, Field(description="of each switch; else what its links carry")] = (
        None
    )
    slots: Slots = 4096
    children: Annotated[
        Children | None, Field(description="most children of a node in a switch; else its program's")
    ] = None


class SingleSwitchSpec(_Generated):
    hosts: Count

    @property
    def links(self) -> int:
        return self.hosts + self.parameter_servers


class LeafSpineSpec(_Generated):
    leaves: Count
    spines: Count
    hosts_per_leaf: Count | None = None
    hosts: Annotated[
        Count | None, Field(description="of all leaves together, in place of hosts_per_leaf")
    ] = None
    fabric_rate: Annotated[Rate | None, Field(description="of the links between leaves and spines")] = None
    oversubscription: Rate | None = None

    @property
    def links(self) -> int:
        hosts = self.hosts or self.leaves * (self.hosts_per_leaf or 0)
        return self.leaves * self.spines + hosts + self.parameter_servers


class FatTreeSpec(_Generated):
    k: Annotated[int, Number, Field(ge=2, le=64)]
    hosts_per_edge: Count | None = None

    @property
    def links(self) -> int:
        half = self.k // 2
        return self.k * half * (2 * half + (self.hosts_per_edge or half)) + self.parameter_servers


class Generate(_Part):
    """Exactly one generator with its arguments."""

    single_switch: SingleSwitchSpec | None = None
    leaf_spine: LeafSpineSpec | None = None
    fat_tree: FatTreeSpec | None = None


class FabricSpec(_Part):
    """A fabric: either `generate`, or `switches`, `hosts` and `links`."""

    name: Name
    unit: UnitName = "Mbit/s"
    defaults: Defaults = Defaults()
    switches: dict[Name, SwitchSpec] = {}
    hosts: dict[Name, HostSpec] = {}
    links: list[LinkSpec] = []
    generate: Generate | None = None


def load_fabric(name_or_path: str | Path) -> Fabric:
    """A fabric from a spec file, a `topology.json` of p4lang/tutorials, or the name of a spec that comes
    with netfold.

    Raises FabricError; a SpecError names file, line, column, what is wrong and what would be right.
    """
    path = spec_file(name_or_path)
    return _fabric_of(read_document(path), path.resolve())


def parse_fabric(text: str, source: str) -> Fabric:
    """A fabric from the text of a spec. `source`: its path, for messages. Raises FabricError as `load_fabric` does."""
    if len(text) > MAX_BYTES:
        raise FabricError(f"{source}: {len(text)} characters; expected at most {MAX_BYTES}")
    return _fabric_of(parse_document(text, source), Path(source))


def _fabric_of(document: Document, path: Path) -> Fabric:
    if is_tutorials_form(document.value):
        return tutorials_fabric(document, path.parent.name or "tutorials")
    return _build(document, _validate(document))


def fabric_from_spec(text: str) -> Fabric:
    """The fabric that `spec_text` has written. Raises FabricError."""
    try:
        spec = FabricSpec.model_validate_json(text)
    except ValidationError as error:
        raise FabricError(f"a stored fabric cannot be read: {error}") from error
    return _build(Document(spec.name, None, {}), spec)


def spec_text(fabric: Fabric) -> str:
    """A spec, in JSON, which `load_fabric` reads as this fabric. It numbers all ports. Raises FabricError for what
    specs do not have: another unit, or a switch with more neighbors than ports."""
    if UNITS.get(fabric.unit.name) != fabric.unit:
        raise FabricError(f"{fabric.name}: unit {fabric.unit}; expected one of {', '.join(UNITS)}")
    for s in fabric.switches:
        if (neighbors := len(fabric.neighbors[s.name])) > LAST_PORT:
            raise FabricError(
                f"{fabric.name}: '{s.name}' has {neighbors} neighbors; a switch has at most {LAST_PORT} ports"
            )
    links = [(x, {"rate": x.rate, "queue": x.queue, "delay_ms": x.delay_ms}) for x in fabric.links]
    of_host = {end: values for x, values in links for end in (x.a, x.b) if fabric.is_host(end)}
    spec = {
        "name": fabric.name,
        "unit": fabric.unit.name,
        "switches": {
            s.name: {
                "role": s.role,
                "capacity": s.capacity,
                "slots": s.slots,
                "children": s.children,
                "chip": s.chip,
                "ports": fabric.ports[s.name],
                "loopbacks": [asdict(x) for x in s.loopbacks],
                "prefix": _text(s.prefix),
                "loopback": _text(s.loopback),
                "device_id": s.device_id,
            }
            for s in fabric.switches
        },
        "hosts": {
            h.name: {
                "at": fabric.attachment(h.name),
                "parameter_server": h.parameter_server,
                "capacity": h.capacity,
                "address": _text(h.address),
                **of_host[h.name],
            }
            for h in fabric.hosts
        },
        "links": [
            {"between": [x.a, x.b], **values}
            for x, values in links
            if not (fabric.is_host(x.a) or fabric.is_host(x.b))
        ],
    }
    return json.dumps(spec, indent=1) + "\n"


def _text(number: IPv4Address | IPv4Network | None) -> str | None:
    return None if number is None else str(number)


def load_exercise(name_or_path: str | Path) -> Exercise | None:
    """Read the part of a `topology.json` of p4lang/tutorials that is not its fabric; None for another spec. Raises
    FabricError."""
    document = read_document(spec_file(name_or_path))
    return read_exercise(document) if is_tutorials_form(document.value) else None


def spec_names() -> list[str]:
    """Names of the specs of netfold."""
    return sorted(p.stem for p in SPECS.glob("*.yaml"))


def schema_text() -> str:
    """The JSON Schema of a spec file, which pydantic derives from the models here."""
    schema = FabricSpec.model_json_schema()
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "netfold fabric"}
    return json.dumps({**schema, **head}, indent=2, sort_keys=True) + "\n"


def spec_file(name_or_path: str | Path) -> Path:
    """The file of a fabric, or of a spec that comes with netfold. Raises FabricError."""
    path = Path(name_or_path)
    if path.name == str(name_or_path) and str(name_or_path) in spec_names():
        return SPECS / f"{name_or_path}.yaml"
    try:
        if path.is_file():
            return path
    except OSError as error:
        raise FabricError(f"'{path}' cannot be read: {error.strerror}") from error
    known = hint(str(name_or_path), spec_names())
    raise FabricError(f"'{name_or_path}' is neither a file nor a spec of netfold{known}")


def _validate(document: Document) -> FabricSpec:
    if not isinstance(document.value, dict):
        raise document.error(
            (), "a spec is a mapping with name, switches, hosts and links, or name and generate"
        )
    try:
        return FabricSpec.model_validate(document.value)
    except ValidationError as error:
        problems = model_problems(document, FabricSpec, error, {NAME_PATTERN: NAME_RULE})
        raise SpecError(document.file, list(problems)) from None


def _build(document: Document, spec: FabricSpec) -> Fabric:
    if spec.generate is None:
        return _listed(document, spec)
    try:
        return _generated(document, spec, spec.generate)
    except SpecError:
        raise
    except FabricError as error:
        raise document.error(("generate",), str(error)) from error


def _generated(document: Document, spec: FabricSpec, generate: Generate) -> Fabric:
    for key in ("switches", "hosts", "links", "defaults"):
        if key in spec.model_fields_set:
            raise document.error((key,), f"'{key}' and 'generate' exclude each other")
    chosen = {k: v for k, v in generate if v is not None}
    if len(chosen) != 1:
        known = ", ".join(Generate.model_fields)
        raise document.error(("generate",), f"generate needs exactly one of {known}; it has {len(chosen)}")
    [(name, arguments)] = chosen.items()
    if arguments.links > MAX_GENERATED_LINKS:
        raise document.error(
            ("generate", name),
            f"{arguments.links:,} links; a generator makes at most {MAX_GENERATED_LINKS:,}",
        )
    fabric: Fabric = getattr(generators, name)(**dict(arguments), unit=UNITS[spec.unit], name=spec.name)
    return fabric


def _listed(document: Document, spec: FabricSpec) -> Fabric:
    if not spec.switches:
        raise document.error(
            ("switches",), "expected at least one switch: list 'switches' or 'generate' the fabric"
        )
    switches = tuple(_switch(document, spec, name, s) for name, s in spec.switches.items())
    hosts = tuple(Host(name, h.parameter_server, h.capacity, h.address) for name, h in spec.hosts.items())
    links = [_link(document, spec, ("hosts", name), (name, h.at), h) for name, h in spec.hosts.items()]
    links += [
        _link(document, spec, ("links", i), (x.between[0], x.between[1]), x) for i, x in enumerate(spec.links)
    ]
    try:
        return Fabric(spec.name, hosts, switches, tuple(links), UNITS[spec.unit])
    except FabricError as error:
        raise document.with_lines(error, lambda place: _place_in_file(spec, place)) from None


def _place_in_file(spec: FabricSpec, place: Place) -> Place:
    """The place in the file of a place in the fabric, whose links are those of the hosts and then `links`."""
    if place[:1] != ("links",):
        return place
    number = int(place[1])
    if number < len(spec.hosts):
        return ("hosts", list(spec.hosts)[number], "at")
    return ("links", number - len(spec.hosts), "between")


def _switch(document: Document, spec: FabricSpec, name: str, values: SwitchSpec) -> Switch:
    default, link = spec.defaults.switch, spec.defaults.link
    loopbacks = []
    for i, loopback in enumerate(values.loopbacks):
        rate = loopback.rate or link.rate
        if rate is None:
            raise document.error(
                ("switches", name, "loopbacks", i),
                f"loopback {loopback.port} has no rate; expected 'rate' here or in defaults.link",
            )
        loopbacks.append(Loopback(loopback.port, rate, loopback.queue or link.queue))
    return Switch(
        name,
        values.role or default.role,
        default.capacity if values.capacity is None else values.capacity,
        values.slots or default.slots,
        tuple(values.ports.items()),
        values.chip or default.chip,
        tuple(loopbacks),
        values.children or default.children,
        prefix=values.prefix,
        loopback=values.loopback,
        device_id=values.device_id,
    )


def _link(
    document: Document, spec: FabricSpec, place: Place, ends: tuple[str, str], values: _LinkValues
) -> Link:
    default = spec.defaults.link
    rate = values.rate or default.rate
    if rate is None:
        raise document.error(
            place, f"the link {ends[0]}-{ends[1]} has no rate; expected 'rate' here or in defaults.link"
        )
    delay = default.delay_ms if values.delay_ms is None else values.delay_ms
    return Link(*ends, rate, values.queue or default.queue, delay)
