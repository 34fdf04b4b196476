# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines the interface of a feature: what an option of a job (RoCE, a quorum) changes in the checks of the job, its
placement, its switch entries, its members and its explanation.

registry.py lists the features. A feature overrides the methods that it changes; the defaults are those of a job without
features. A feature has no state: the job's record holds what it has to remember.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from netfold.controller.jobs.file import JobFile, ResolvedJob
from netfold.controller.jobs.records import AllocatedTree, JobRecord
from netfold.controller.planning.plan import Plan, Tree
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.tree_feature import SwitchFeature
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.fabric import Fabric


class RegistrationError(Exception):
    """A member registers what its job does not have; the message names it."""


@dataclass(frozen=True)
class EpochRequest:
    """A registration that makes the present epoch of its job unusable."""

    reason: str


class Feature(SwitchFeature, ABC):
    """An option of a job. Methods from `workers_problem` on are called for jobs with the feature only."""

    pending_entries = "entries"
    """Name of the entries that `has_pending_entries` speaks of, for messages."""

    @abstractmethod
    def is_in(self, file: JobFile) -> bool:
        """Whether a job file requests the feature."""

    @abstractmethod
    def is_used_by(self, job: JobRecord) -> bool:
        """Whether a job has the feature."""

    # ---- checks and placement ----------------------------------------------------------------------------

    def workers_problem(self, fabric: Fabric, workers: Sequence[str]) -> str:
        """Why a job cannot consist of these workers; "" if it can."""
        return ""

    def refusals(
        self, fabric: Fabric, lanes: int, resolved: ResolvedJob, plan: Plan, installed: Iterable[JobRecord]
    ) -> Iterator[str]:
        """Why the job cannot run by this plan in addition to the `installed` jobs. `lanes`: those of the programs."""
        return iter(())

    def numerics_nodes(self, tree: Tree) -> set[str]:
        """Nodes that have to know the numerics of the job in addition to those that add up."""
        return set()

    def window(self, fabric: Fabric, plan: Plan, tree: Tree) -> int | None:
        """The window of a tree; None: that of a job without features."""
        return None

    def min_contributions(self, file: JobFile, workers: int) -> int:
        """Contributions of a chunk that are enough after a deadline, for a plan of that many workers; 0: all are
        needed."""
        return 0

    def has_enough_workers(self, file: JobFile, workers: int) -> bool:
        """Whether the job continues with this number of workers although others have left."""
        return False

    # ---- members -----------------------------------------------------------------------------------------

    def newcomer_problem(self, job: JobRecord, workers: int) -> str:
        """Why no worker may join a job that runs, which then has that many workers; "" if one may."""
        return ""

    def late_senders(self, numbers: AllocatedTree, tree: Tree) -> Sequence[str]:
        """Nodes other than its children from which the root of a tree accepts contributions."""
        return ()

    def on_member_update(
        self, job: JobRecord, host: str, update: pb.MemberUpdate, jobs: Iterable[JobRecord]
    ) -> JobRecord | EpochRequest | None:
        """The job after the member of `host` has registered something of the feature; None: nothing changes. `jobs`:
        all jobs. Raises RegistrationError."""
        return None

    def has_controller_update(self, job: JobRecord, host: str) -> bool:
        """Whether a member gets an update of the feature in the present epoch, once after its assignment."""
        return False

    def controller_update(self, config: FabricConfig, job: JobRecord, host: str) -> pb.ControllerUpdate:
        """This update."""
        return pb.ControllerUpdate()

    # ---- entries that follow the start of the job --------------------------------------------------------

    def has_pending_entries(self, job: JobRecord) -> bool:
        """Whether switches have to take entries of the feature of which the record does not say that they have."""
        return False

    def with_entries_installed(self, job: JobRecord) -> JobRecord:
        """The job after all its switches have taken these entries."""
        return job

    # ---- explanation -------------------------------------------------------------------------------------

    def explain(self, fabric: Fabric, job: JobRecord) -> Iterator[str]:
        """Sentences for `job explain` about an installed job."""
        return iter(())
