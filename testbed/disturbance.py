# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What a run does to its own network: frames lost at random on every link, and a switch that ends under the training
and comes back empty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from netfold.testbed import counters
from netfold.testbed.errors import RunError
from netfold.topologies.fabric import Fabric
from netfold.topologies.network.builder import Network
from netfold.topologies.network.faults import Faults

_FLOWING_BYTES = 1 << 16
"""So much has left the first worker when a switch ends: the training's sums flow."""


@dataclass(frozen=True)
class Disturbance:
    """`loss` is a probability of each frame on each link, in both directions; `restart` a switch's name."""

    loss: float = 0.0
    restart: str | None = None

    def check(self, fabric: Fabric) -> None:
        """Raises RunError, NetworkError."""
        names = [s.name for s in fabric.switches]
        if self.restart not in (None, *names):
            raise RunError(f"'{self.restart}' is no switch of {fabric.name}; there are {', '.join(names)}")
        Faults(loss=self.loss)

    def lose(self, net: Network) -> None:
        """Frames are lost from now on."""
        if self.loss > 0:
            ways = [ends for x in net.fabric.links for ends in ((x.a, x.b), (x.b, x.a))]
            for seed, ends in enumerate(ways, 1):
                net.set_faults(*ends, Faults(loss=self.loss, seed=seed))

    def restarting(self, net: Network, tell: Callable[[str], None]) -> Callable[[], None]:
        """What to call again and again while the training runs: once its sums flow, the switch ends and comes back."""
        if self.restart is None:
            return lambda: None
        switch, first = net.switches[self.restart], net.fabric.hosts[0].name
        way = first, net.fabric.attachment(first)
        started, done = counters.read_link_bytes(net)[way], False

        def look() -> None:
            nonlocal done
            if not done and counters.read_link_bytes(net)[way] - started >= _FLOWING_BYTES:
                done = True
                tell(f"{switch.name} is killed, and started again")
                switch.kill()
                switch.start()

        return look

    def lost(self, net: Network) -> int | None:
        """Frames lost so far; None if none are to be lost."""
        return sum(net.lost_by_faults().values()) if self.loss > 0 else None
