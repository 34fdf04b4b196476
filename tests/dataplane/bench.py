# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A switch and its oracle side by side: what is set on one is set on the other, and every frame that leaves and every
counter has to be the same, and no frame that leaves may break a rule of the protocol's (legal.py)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from netfold.controller.switches.tables import CPU_PORT, MANAGEMENT_PORT
from netfold.protocol.wire import Kind, Verdict
from tests.dataplane.device import Device, Frames
from tests.dataplane.frames import Netfold, gradient, ip
from tests.dataplane.legal import why_illegal, why_illegal_roce
from tests.dataplane.node import MANAGED, Management, Setting, TreeAt
from tests.dataplane.oracle import Oracle
from tests.dataplane.remote import RemoteDevice
from tests.dataplane.roce_frames import BTH_AT, ONLY_IMMEDIATE, QPN_AT, ROCE_PORT
from tests.dataplane.roce_node import RoceHost, RoceWorker

_RESETS = 64
"""Resets that take about as long as a push at a chip's model."""


class Tally:
    """How much was compared in a test run; of the packets `roce` to RoCE's port."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.roce: Counter[str] = Counter()
        self.compared: Counter[str] = Counter()


class Bench:
    def __init__(self, device: Device, lanes: int, tally: Tally, target: str) -> None:
        self.device = device
        self.lanes = lanes
        self.oracle = Oracle(
            lanes, children=device.children, parses_options=device.parses_options, wraps=device.wraps
        )
        self.tally = tally
        self._target = target
        self._installed: dict[int, TreeAt] = {}
        self._roce: dict[int, list[RoceWorker]] = defaultdict(list)
        self._differs = False

    def start_over(self, device: RemoteDevice) -> bool:
        """As a fresh bench, without a push of the program: what registers and counters hold is known, and slots are
        reset as the controller resets them. False if that cannot be, or takes longer."""
        if self._differs or len(self.oracle.claimed()) > _RESETS:
            return False
        self._again(device)
        claimed = self.oracle.claimed()
        if claimed:
            self.install(Management())
        for index in claimed:
            reset = Netfold(Kind.RESET, MANAGED, slot=index, lanes=[0] * self.lanes)
            self.send(CPU_PORT, b"\0\0" + gradient(reset, port=MANAGEMENT_PORT))
        self._again(device)
        return True

    def _again(self, device: RemoteDevice) -> None:
        device.start_over(self.oracle.verdicts)
        self.oracle = self.oracle.emptied()
        self._installed.clear()

    def install(self, *settings: Setting | RoceWorker | RoceHost) -> None:
        for setting in settings:
            if isinstance(setting, TreeAt):
                self.remove(setting.tree)
                self._installed[setting.tree] = setting
            if isinstance(setting, RoceWorker):
                self._roce[setting.at.tree].append(setting)
            self.device.insert(setting.entities())
            self.oracle.install(setting)

    def remove(self, tree: int) -> None:
        """Takes a tree out, if it is there, in the order that leaves nothing pointing at what is gone."""
        for worker in self._roce.pop(tree, []):
            self.device.delete(worker.entities())
        if tree in self._installed:
            self.device.delete(reversed(list(self._installed.pop(tree).entities())))
            self.oracle.remove(tree)

    def send(self, port: int, frame: bytes) -> Frames:
        """One frame through both; gives what left."""
        return self.send_all(port, [frame])

    def send_all(self, port: int, frames: Sequence[bytes]) -> Frames:
        """Several, one after the other; what left is looked at when all are through, if the device can do that."""
        # the controller's too: a chip's drivers fill them up
        frames = [frame.ljust(self.device.least_bytes, b"\0") for frame in frames]
        self._differs = True  # until it is known that it does not
        left = self.device.inject_all(port, frames)
        found = sorted((out, self.padded(out, data)) for out, data in left)
        wanted = [each for frame in frames for each in self.oracle.receive(port, frame)]
        expected = sorted((out, self.padded(out, data)) for out, data in wanted)
        self.tally.sent[self._target] += len(frames)
        self.tally.roce[self._target] += sum(map(_is_to_roce, frames))
        self.tally.compared[self._target] += len(expected)
        assert found == expected, _difference(port, frames, found, expected)
        self._differs = False
        if port != CPU_PORT:  # the controller may have anything sent
            illegal = [(out, self._why_illegal(out, data)) for out, data in found if out != CPU_PORT]
            after = ", ".join(frame.hex() for frame in frames)
            assert all(wrong is None for _, wrong in illegal), f"after {after}: {illegal}"
        return found

    def inject(self, port: int, frame: bytes) -> Frames:
        """Past the oracle, which then does not know what registers hold: the next bench begins with a push."""
        self._differs = True
        return self.device.inject(port, frame)

    def _why_illegal(self, port: int, frame: bytes) -> str | None:
        """Also of RoCE, where it is for a QP that nothing but sums goes to."""
        if _is_to_roce(frame) and frame[BTH_AT] <= ONLY_IMMEDIATE:
            own = [w.own for workers in self._roce.values() for w in workers if w.own.port == port]
            ends = [ip(peer.address) + peer.receiving.to_bytes(3, "big") for peer in own]
            if frame[30:34] + frame[QPN_AT : QPN_AT + 3] in ends:
                return why_illegal_roce(frame, self.lanes)
        return why_illegal(frame, self.lanes)

    def padded(self, port: int, frame: bytes) -> bytes:
        """The frame as Ethernet carries it. Packets to the controller come by another way."""
        return frame if port == CPU_PORT else frame.ljust(self.device.least_bytes, b"\0")

    def check_counters(self, *trees: int) -> None:
        """Check that each packet counts once, in its cell (I8): of these trees, of those installed, and of no tree."""
        for index in {0, *trees, *self._installed}:
            wanted = {v: n for (i, v), n in self.oracle.verdicts.items() if i == index}
            found = self.device.verdicts(index)
            self._differs |= found != wanted
            assert found == wanted, f"tree {index}: counted {_named(found)}, expected {_named(wanted)}"

    def verdict_of(self, port: int, frame: bytes) -> Verdict:
        """Sends a frame and gives the verdict that was counted."""
        before = self.oracle.verdicts.copy()
        self.send(port, frame)
        ((index, verdict),) = self.oracle.verdicts - before
        self.check_counters(index)
        return Verdict(verdict)


def _named(cells: dict[int, int]) -> dict[str, int]:
    names = {int(verdict): verdict.name.lower() for verdict in Verdict}
    return {names.get(verdict, str(verdict)): packets for verdict, packets in sorted(cells.items())}


def _is_to_roce(frame: bytes) -> bool:
    return len(frame) > BTH_AT and frame[36:38] == ROCE_PORT.to_bytes(2, "big")


def _difference(port: int, frames: Sequence[bytes], found: Frames, expected: Frames) -> str:
    lines = [f"after {frame.hex()} into port {port}" for frame in frames]
    lines += [f"  left    port {out}: {data.hex()}" for out, data in found]
    lines += [f"  instead port {out}: {data.hex()}" for out, data in expected]
    return "\n".join(lines)
