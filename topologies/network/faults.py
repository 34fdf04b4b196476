# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Faults on the links of a running network, at run time: what softswitch's ports do to the frames that pass; with other
switches the kernel loses frames at random, and does nothing else to them."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netfold.topologies.network import kernel, kernel_loss
from netfold.topologies.network.errors import NetworkError
from netfold.topologies.network.state import State, SwitchState

_MS = 1_000_000


@dataclass(frozen=True)
class Faults:
    """What happens to the frames of one direction of a link.

    loss, duplicate, reorder, corrupt  probabilities, 0 to 1
    delay_ms, jitter_ms                on top of the link's own delay; drawn evenly from delay +- jitter
    seed                               the same seed does the same to the n-th frame; not with losses by the kernel
    """

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        for kind in ("loss", "duplicate", "reorder", "corrupt"):
            if not 0 <= getattr(self, kind) <= 1:
                raise NetworkError(f"{kind} is {getattr(self, kind)}; it is a probability from 0 to 1")
        for kind in ("delay_ms", "jitter_ms"):
            if not 0 <= getattr(self, kind) <= 60_000:
                raise NetworkError(f"{kind} is {getattr(self, kind)}; it must be from 0 to 60000")

    def request(self, port: int, direction: str, link_delay_ms: float) -> dict[str, Any]:
        """What the control socket of a switch is told; `direction` "in" or "out" is as seen by the switch."""
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
    """What happens from now on to frames that go from `sender` to its neighbor `receiver`.

    The switch among the two does it (the sender, if both are), or else the kernel, before the receiver has a frame.
    Raises NetworkError where the target cannot."""
    switch, port, direction, delay_ms = _place(state, sender, receiver)
    if not state.faults:
        if faults != Faults(loss=faults.loss, seed=faults.seed):
            raise NetworkError(f"the target {state.target} cannot set other faults than loss; softswitch can")
        kernel_loss.set_loss(*_entrance(state, sender, receiver), faults.loss)
        return
    ask(Path(switch.control_socket), [faults.request(port, direction, delay_ms)])


def counted_faults(state: State) -> dict[tuple[str, str], dict[str, int]]:
    """What has happened to frames so far: counts by kind, by sender and receiver. Raises NetworkError."""
    if not state.faults:
        ways = [way for x in state.links for way in ((x.a, x.b), (x.b, x.a))]
        return {way: {"lost": kernel_loss.lost(*_entrance(state, *way))} for way in ways}
    ports = {n: ask(Path(s.control_socket), [{"op": "ports"}])[0] for n, s in state.switches.items()}
    found: dict[tuple[str, str], dict[str, int]] = {}
    for link in state.links:
        for sender, receiver in ((link.a, link.b), (link.b, link.a)):
            switch, number, direction, _ = _place(state, sender, receiver)
            [port] = [p for p in ports[switch.name] if p["port"] == number]
            found[sender, receiver] = port["faults"][direction]
    return found


def _entrance(state: State, sender: str, receiver: str) -> tuple[str, int | None]:
    """The interface by which the receiver takes what the sender sends; and its process, if it is a host."""
    link = state.link(f"{sender}-{receiver}")
    if receiver == link.b:
        return link.interface_b, None
    return (link.interface_a, None) if link.interface_a else (kernel.HOST_INTERFACE, state.host(receiver).pid)


def _place(state: State, sender: str, receiver: str) -> tuple[SwitchState, int, str, float]:
    """Where frames of this direction are met: the switch, its port, "in" or "out" there; and the link's delay."""
    link = state.link(f"{sender}-{receiver}")
    if sender == link.b:
        return state.switch(sender), link.port_b, "out", link.delay_ms
    if link.port_a is None:
        return state.switch(receiver), link.port_b, "in", link.delay_ms
    return state.switch(sender), link.port_a, "out", link.delay_ms


def ask(control_socket: Path, requests: list[dict[str, Any]], timeout_s: float = 5.0) -> list[Any]:
    """Send requests to a switch's control socket, a line of JSON each, and return the results in order.

    Raises NetworkError if it refuses one (later ones are not sent then) or does not answer within `timeout_s`."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(control_socket))
            with connection.makefile("rb") as answers:
                return [_ask_one(connection, answers, request) for request in requests]
    except (OSError, ValueError, KeyError) as error:
        raise NetworkError(f"the control socket {control_socket} does not answer: {error}") from error


def _ask_one(connection: socket.socket, answers: Any, request: dict[str, Any]) -> Any:
    connection.sendall(json.dumps(request).encode() + b"\n")
    answer = json.loads(answers.readline())
    if not answer["ok"]:
        raise NetworkError(f"the switch refused {request['op']}: {answer['error']}")
    return answer["result"]
