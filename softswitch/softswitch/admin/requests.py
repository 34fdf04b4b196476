# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The requests of the control socket."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

PORT_MAX = 65535
QUEUE_MAX = 65536
DEFAULT_QUEUE = 64

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(|[kmgt]?bit|[kmgt]?bps)", re.IGNORECASE)
_SCALE = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def parse_rate(text: str | int) -> int:
    """Bits per second of a rate as `tc` writes it: "100mbit", "2.5gbit", "8000" (bits), "1mbps" (bytes). 0 = no limit.

    Raises ValueError.
    """
    if isinstance(text, int):
        if text < 0:
            raise ValueError(f"rate {text} is negative")
        return text
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"rate {text!r}: expected a rate such as 100mbit, 2.5gbit or 64kbit; 0 for no limit")
    unit = match[2].lower()
    bits = float(match[1]) * _SCALE[unit[:-3]] * (8 if unit.endswith("bps") else 1)
    return round(bits)


Port = Annotated[int, Field(ge=0, le=PORT_MAX)]
Probability = Annotated[float, Field(ge=0, le=1)]
Nanoseconds = Annotated[int, Field(ge=0, le=60 * 10**9)]


class Request(BaseModel):
    """Base of all requests; rejects unknown fields."""

    # Built at the first request, since a switch starts in less time so.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class Info(Request):
    """Device id, process id, gRPC address, name of the program."""

    op: Literal["info"]


class Ports(Request):
    """All ports: interface, state, counters of the engine and of the core."""

    op: Literal["ports"]


class Stats(Request):
    """Counters of the switch as a whole."""

    op: Literal["stats"]


class AddPort(Request):
    """Binds a port to an interface, `xdp:IFACE` by AF_XDP, or to a device of DPDK, `dpdk:DEVICE`."""

    op: Literal["add-port"]
    port: Port
    interface: Annotated[str, Field(min_length=1, max_length=256)]


class RemovePort(Request):
    """Removes a port."""

    op: Literal["remove-port"]
    port: Port


class SetRate(Request):
    """The emulated link behind a port: rate (bits per second, or "100mbit"; 0 = no limit) and queue (packets)."""

    op: Literal["set-rate"]
    port: Port
    rate: Annotated[int, BeforeValidator(parse_rate)]
    queue: Annotated[int, Field(ge=1, le=QUEUE_MAX)] = DEFAULT_QUEUE


class SetFaults(Request):
    """Faults of one direction of a port's link; omitted ones are off."""

    op: Literal["set-faults"]
    port: Port
    direction: Literal["in", "out"]
    loss: Probability = 0.0
    duplicate: Probability = 0.0
    reorder: Probability = 0.0
    corrupt: Probability = 0.0
    delay_ns: Nanoseconds = 0
    jitter_ns: Nanoseconds = 0
    reorder_gap: Annotated[int, Field(ge=1, le=1000)] = 3
    reorder_hold_ns: Nanoseconds = 1_000_000
    seed: Annotated[int, Field(ge=0, lt=1 << 62)] = 1


class Capture(Request):
    """Captures all ports to a folder (pcap); null ends it."""

    op: Literal["capture"]
    folder: str | None


class Command(Request):
    """A command line of simple_switch_CLI; the result is its output (verbs/)."""

    op: Literal["command"]
    line: Annotated[str, Field(max_length=8192)]


AnyRequest = Annotated[
    Info | Ports | Stats | AddPort | RemovePort | SetRate | SetFaults | Capture | Command,
    Field(discriminator="op"),
]
REQUEST: TypeAdapter[AnyRequest] = TypeAdapter(AnyRequest, config=ConfigDict(defer_build=True))


_EXPECTED: Mapping[str, str] = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "literal_error": "{expected}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
}
"""The expected value of a field, by the type of the error of pydantic."""


def explain(error: ValidationError) -> str:
    """Each mistake of a request: the field, its value, and what it takes."""
    return "; ".join(map(_mistake, error.errors(include_url=False)))


def _mistake(error: ErrorDetails) -> str:
    name, context = error["loc"][-1] if error["loc"] else "", error.get("ctx", {})
    match error["type"]:
        case "missing":
            return f"'{name}' is missing"
        case "extra_forbidden":
            return f"'{name}' is unknown"
        case "value_error":
            return str(context["error"])
        case "json_invalid":
            return f"the request is no JSON: {context['error']}"
        case "union_tag_invalid":
            return f"op is '{context['tag']}'; expected one of {context['expected_tags']}"
        case "union_tag_not_found":
            return "'op' is missing"
        case kind if kind in _EXPECTED:
            return f"{name} is {error['input']!r}; expected {_EXPECTED[kind].format_map(context)}"
        case _:
            return "the request is no JSON object"
