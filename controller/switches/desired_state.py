# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Computes the desired contents of every switch: a pure function of the fabric, the failed and drained elements, the
jobs and the revisions of the switches' slots.

The history of a switch does not matter: installing, repairing and removing are the same difference between the desired
contents and those that were read from the switch (install.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from netfold.controller.jobs.records import JobRecord
from netfold.controller.jobs.revisions import Revision
from netfold.controller.switches.base_entries import BaseEntries, revision_entry
from netfold.controller.switches.entries import Contents, Entity, add
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import NO_ELEMENTS, FailedElements
from netfold.controller.switches.tree_entities import tree_entities
from netfold.controller.switches.tree_feature import InstalledTree, SwitchFeature
from netfold.p4src.manifest import Program

MAX_INLINE_ROUTES = 2_000
"""Number of routes to other racks, in all switches together, that are computed in milliseconds, without a thread."""


NO_REVISIONS: Mapping[str, Revision] = {}


def desired_contents(
    config: FabricConfig,
    jobs: Iterable[JobRecord],
    failed: FailedElements,
    revisions: Mapping[str, Revision] = NO_REVISIONS,
    features: Sequence[SwitchFeature] = (),
    drained: FailedElements = NO_ELEMENTS,
) -> dict[str, Contents]:
    """The desired contents of each switch. Only installed jobs count. `revisions` are those of the slots of the
    switches."""
    return DesiredState(config, features).contents(jobs, failed, revisions, drained)


class DesiredState:
    """`desired_contents` with a cache: the base entries for the same failed and drained elements, and the entities of
    each tree in its job's epoch (a placement never changes, and a new one of the job has new tree numbers)."""

    def __init__(self, config: FabricConfig, features: Sequence[SwitchFeature] = ()) -> None:
        self._config = config
        self._features = features
        self._base_entries = BaseEntries(config)
        self._base: tuple[FailedElements, FailedElements, dict[str, Contents]] | None = None
        self._trees: dict[tuple[int, int, int], list[tuple[str, Entity]]] = {}

    @property
    def is_small(self) -> bool:
        """Whether routes are computed in milliseconds: `contents` then computes them in the thread of its caller."""
        racks = sum(s.prefix is not None for s in self._config.addresses.switches.values())
        return racks * len(self._config.fabric.switches) <= MAX_INLINE_ROUTES

    def has_routes(self, failed: FailedElements, drained: FailedElements = NO_ELEMENTS) -> bool:
        """Whether the routes around these elements are computed."""
        return self._base is not None and self._base[:2] == (failed, drained)

    def compute_routes(self, failed: FailedElements, drained: FailedElements = NO_ELEMENTS) -> None:
        """Compute the routes around failed and drained elements. May run in a thread, one call at a time."""
        self._base = (failed, drained, self._base_entries.contents(failed, drained))

    def set_program(self, switch: str, program: Program) -> None:
        """Set the program that a switch runs from now on."""
        entries = self._base_entries.set_program(switch, program)
        if self._base is not None:
            self._base[2][switch].update(entries)

    def contents(
        self,
        jobs: Iterable[JobRecord],
        failed: FailedElements,
        revisions: Mapping[str, Revision] = NO_REVISIONS,
        drained: FailedElements = NO_ELEMENTS,
    ) -> dict[str, Contents]:
        """The contents as of `desired_contents`. In a large fabric they have the routes that were computed last."""
        if self._base is None or (self.is_small and not self.has_routes(failed, drained)):
            self.compute_routes(failed, drained)
        assert self._base is not None
        contents = {switch: dict(base) for switch, base in self._base[2].items()}
        jobs = list(jobs)
        self._trees = {key: entities for job in jobs for key, entities in self._tree_entities(job)}
        for entities in self._trees.values():
            for switch, entity in entities:
                add(contents[switch], entity)
        for feature in self._features:
            for switch, entity in feature.job_entities(self._config, jobs):
                add(contents[switch], entity)
        for switch, revision in revisions.items():
            cpu_port = self._config.device(switch).cpu_port
            add(contents[switch], revision_entry(cpu_port, self._config.management_tree, revision))
        return contents

    def prepare(self, job: JobRecord) -> None:
        """Compute the entities of a job before `contents` needs those of all."""
        self._trees.update(self._tree_entities(job))

    def _tree_entities(
        self, job: JobRecord
    ) -> Iterator[tuple[tuple[int, int, int], list[tuple[str, Entity]]]]:
        for placement in job.placements:
            for numbers, tree in zip(placement.trees, placement.plan.trees, strict=True):
                key = (job.seq, numbers.tree, placement.epoch)
                entities = self._trees.get(key)
                if not entities:
                    installed = InstalledTree(
                        self._config.fabric, numbers, tree, placement.epoch, job.udp_port, job
                    )
                    entities = list(tree_entities(installed, self._features))
                yield key, entities
