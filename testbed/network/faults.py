# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Fault injection on the links of a running network: by the ports of softswitch, or, for other targets, random loss by
the kernel."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netfold.testbed.network import kernel, kernel_loss
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.state import State, SwitchState

_MS = 1_000_000
PROBABILITIES = ("loss", "duplicate", "reorder", "corrupt")


@dataclass(frozen=True)
class Faults:
    """Faults of one direction of a link.

    loss, duplicate, reorder, corrupt  probabilities, 0 to 1
    delay_ms, jitter_ms                added to the link's own delay; uniform in delay +- jitter
    seed                               determines the fate of the n-th frame; without effect on loss by the kernel
    """

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        for kind in PROBABILITIES:
            if not 0 <= getattr(self, kind) <= 1:
                raise NetworkError(f"{kind} is {getattr(self, kind)}: expected a probability, 0 to 1")
        for kind in ("delay_ms", "jitter_ms"):
            if not 0 <= getattr(self, kind) <= 60_000:
                raise NetworkError(f"{kind} is {getattr(self, kind)}: expected 0 to 60000")

    def __str__(self) -> str:
        """List the faults that are on, as "loss 0.05, delay 1 ms"; "" if there are none."""
        kinds = [f"{k} {getattr(self, k):g}" for k in PROBABILITIES if getattr(self, k)]
        delays = [
            f"{k} {getattr(self, f'{k}_ms'):g} ms" for k in ("delay", "jitter") if getattr(self, f"{k}_ms")
        ]
        return ", ".join([*kinds, *delays])

    def request(self, port: int, direction: str, link_delay_ms: float) -> dict[str, Any]:
        """The request to the control socket of a switch; `direction`: "in" or "out" of the switch."""
        return {
            "op": "set-faults",
            "port": port,
            "direction": direction,
            "loss": float(self.loss),
            "duplicate": float(self.duplicate),
            "reorder": float(self.reorder),
            "corrupt": float(self.corrupt),
            "delay_ns": round((self.delay_ms + link_delay_ms) * _MS),
            "jitter_ns": round(self.jitter_ms * _MS),
            "seed": self.seed,
        }


def apply_faults(state: State, sender: str, receiver: str, faults: Faults) -> None:
    """Sets the faults of frames from `sender` to its neighbor `receiver`.

    The switch of the two injects them (the sender, if both are switches), otherwise the kernel at the receiver's
    interface. Raises NetworkError if the target cannot."""
    switch, port, direction, delay_ms = _injection_point(state, sender, receiver)
    if not state.faults:
        if faults != Faults(loss=faults.loss, seed=faults.seed):
            raise NetworkError(f"target {state.target} supports loss only; softswitch supports all faults")
        kernel_loss.set_loss(*_ingress_interface(state, sender, receiver), faults.loss)
        return
    request(Path(switch.control_socket), [faults.request(port, direction, delay_ms)])


@dataclass(frozen=True)
class DirectionFaults:
    """Faults of one direction of a link. `settings`: None if the target does not report them, as for the kernel's
    loss; `counts`: frames so far, by fault."""

    settings: Faults | None
    counts: Mapping[str, int]


def read_faults(state: State) -> dict[tuple[str, str], DirectionFaults]:
    """Read the faults of all links, by sender and receiver. Raises NetworkError."""
    if not state.faults:
        directions = [ends for x in state.links for ends in ((x.a, x.b), (x.b, x.a))]
        lost = {ends: kernel_loss.lost(*_ingress_interface(state, *ends)) for ends in directions}
        return {ends: DirectionFaults(None, {"lost": count}) for ends, count in lost.items()}
    ports = {n: request(Path(s.control_socket), [{"op": "ports"}])[0] for n, s in state.switches.items()}
    found: dict[tuple[str, str], DirectionFaults] = {}
    for link in state.links:
        for sender, receiver in ((link.a, link.b), (link.b, link.a)):
            switch, number, direction, delay_ms = _injection_point(state, sender, receiver)
            [port] = [p for p in ports[switch.name] if p["port"] == number]
            settings = _settings(port["fault_settings"][direction], delay_ms)
            found[sender, receiver] = DirectionFaults(settings, port["faults"][direction])
    return found


def _settings(found: Mapping[str, Any], link_delay_ms: float) -> Faults:
    """Without the link's own delay."""
    kinds = {kind: found[kind] for kind in PROBABILITIES}
    delay_ms = max(0.0, found["delay_ns"] / _MS - link_delay_ms)
    return Faults(**kinds, delay_ms=delay_ms, jitter_ms=found["jitter_ns"] / _MS, seed=found["seed"])


def _ingress_interface(state: State, sender: str, receiver: str) -> tuple[str, int | None]:
    """The interface at which the receiver gets the sender's frames, and the process of a host."""
    link = state.link(f"{sender}-{receiver}")
    if receiver == link.b:
        return link.interface_b, None
    return (link.interface_a, None) if link.interface_a else (kernel.HOST_INTERFACE, state.host(receiver).pid)


def _injection_point(state: State, sender: str, receiver: str) -> tuple[SwitchState, int, str, float]:
    """The switch that injects the faults, its port, the direction there, and the link's delay."""
    link = state.link(f"{sender}-{receiver}")
    if sender == link.b:
        return state.switch(sender), link.port_b, "out", link.delay_ms
    if link.port_a is None:
        return state.switch(receiver), link.port_b, "in", link.delay_ms
    return state.switch(sender), link.port_a, "out", link.delay_ms


def request(control_socket: Path, requests: list[dict[str, Any]], timeout_s: float = 5.0) -> list[Any]:
    """Sends requests to a switch's control socket, one line of JSON each; the results in order.

    Raises NetworkError if the switch rejects one (the others are not sent) or does not answer within `timeout_s`."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(control_socket))
            with connection.makefile("rb") as answers:
                return [_request_one(connection, answers, one) for one in requests]
    except (OSError, ValueError, KeyError) as error:
        raise NetworkError(f"the control socket {control_socket} does not answer: {error}") from error


def _request_one(connection: socket.socket, answers: Any, message: dict[str, Any]) -> Any:
    connection.sendall(json.dumps(message).encode() + b"\n")
    answer = json.loads(answers.readline())
    if not answer["ok"]:
        raise NetworkError(f"the switch refused {message['op']}: {answer['error']}")
    return answer["result"]
