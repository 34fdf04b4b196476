# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines what an option of a job (RoCE, a quorum) may change in switches: the entities of its trees, and entities of
its own. controller/features implements the interfaces; the defaults are those of a job without features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from netfold.controller.jobs.records import AllocatedTree, JobRecord
from netfold.controller.planning.plan import Tree
from netfold.controller.switches.entries import Entity
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.tables import Sender
from netfold.topologies.fabric import Fabric


@dataclass(frozen=True)
class InstalledTree:
    """A tree of a job in one epoch. `numbers` are its tree number, slots and bases; `udp_port` is the job's. `job`:
    None while a placement is only checked."""

    fabric: Fabric
    numbers: AllocatedTree
    tree: Tree
    epoch: int
    udp_port: int
    job: JobRecord | None = None

    def sender(self, port: int, child: int) -> Sender:
        """The sender of edge number `child`, whose packets enter a switch by `port`."""
        return Sender(port, self.udp_port, self.numbers.tree, child, self.epoch, self.numbers.slots)


class TreeFeature:
    """A feature in one tree."""

    def entry_port(self, host: str, port: int) -> int:
        """The port number under which contributions of `host`, which is attached to `port`, are admitted."""
        return port

    def resend_receiver(self, host: str) -> str:
        """The host that receives a result which `host` requested again."""
        return host

    def late_senders(self, child: str) -> Sequence[int]:
        """Edges whose late contributions reach the root by way of `child`, a child of the root."""
        return ()

    def entities(self) -> Iterator[tuple[str, Entity]]:
        """Entities beyond those of every tree, each with its switch."""
        return iter(())


class SwitchFeature:
    """A feature as the desired state of switches sees it."""

    def tree_feature(self, installed: InstalledTree) -> TreeFeature | None:
        """The feature in one tree; None: the tree's job does not have it."""
        return None

    def job_entities(self, config: FabricConfig, jobs: Iterable[JobRecord]) -> Iterator[tuple[str, Entity]]:
        """Entities of all jobs in addition to those of their trees, each with its switch. They may change while a tree
        stays."""
        return iter(())
