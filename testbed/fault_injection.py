# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Faults that a run injects into its network: random loss on every link, and a switch killed and restarted during the
training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from netfold.testbed.errors import RunError
from netfold.testbed.network.faults import Faults
from netfold.testbed.network.network import Network
from netfold.topologies.fabric import Fabric

_FLOWING_BYTES = 1 << 16
"""Bytes that the first worker has sent when the switch is killed: sums are in flight."""


@dataclass(frozen=True)
class FaultInjection:
    """`loss`: probability per frame on each link, in both directions; `restart`: name of a switch."""

    loss: float = 0.0
    restart: str | None = None

    def check(self, fabric: Fabric) -> None:
        """Raises RunError, NetworkError."""
        names = [s.name for s in fabric.switches]
        if self.restart not in (None, *names):
            raise RunError(
                f"'{self.restart}' is no switch of {fabric.name}; expected one of {', '.join(names)}"
            )
        Faults(loss=self.loss)

    def start_loss(self, net: Network) -> None:
        """Starts the loss, with a seed of its own for each direction of a link."""
        if self.loss > 0:
            directions = [ends for x in net.fabric.links for ends in ((x.a, x.b), (x.b, x.a))]
            for seed, ends in enumerate(directions, 1):
                net.set_faults(*ends, Faults(loss=self.loss, seed=seed))

    def restarting(self, net: Network, on_step: Callable[[str], None]) -> Callable[[], None]:
        """A function to call periodically during the training: restarts the switch once sums are in flight."""
        if self.restart is None:
            return lambda: None
        switch, first = net.switches[self.restart], net.fabric.hosts[0].name
        link = first, net.fabric.attachment(first)
        started, done = net.link_bytes()[link], False

        def poll() -> None:
            nonlocal done
            if not done and net.link_bytes()[link] - started >= _FLOWING_BYTES:
                done = True
                on_step(f"killing and restarting {switch.name}")
                switch.kill()
                switch.start()

        return poll

    def lost(self, net: Network) -> int | None:
        """Frames lost so far; None without injected loss."""
        return sum(net.lost_by_faults().values()) if self.loss > 0 else None
