# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Lists the features of jobs in one place. A new feature is a module like quorum_feature.py and an entry in each table
here that concerns it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from netfold.controller.jobs.records import JobRecord
from netfold.controller.switches import quorum_feature, roce_feature
from netfold.controller.switches.entries import Entity
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.install_phase import Phase
from netfold.controller.switches.tree_feature import InstalledTree, TreeFeature

TREE_FEATURES: tuple[Callable[[InstalledTree], TreeFeature | None], ...] = (
    roce_feature.roce_feature,
    quorum_feature.quorum_feature,
)

JOB_ENTITIES: tuple[Callable[[FabricConfig, Iterable[JobRecord]], Iterator[tuple[str, Entity]]], ...] = (
    roce_feature.connection_entities,
)
"""Entities that change while a tree stays, because they depend on more than its placement."""

TABLE_PHASES: Mapping[str, Phase] = {**roce_feature.TABLE_PHASES}
"""Tables that features added, and the phase in which their entries are written."""


def features_of(installed: InstalledTree) -> list[TreeFeature]:
    """The features of the job of a tree."""
    return [f for make in TREE_FEATURES if (f := make(installed)) is not None]


def job_entities(config: FabricConfig, jobs: list[JobRecord]) -> Iterator[tuple[str, Entity]]:
    """Entities of all jobs in addition to those of their trees, each with its switch."""
    for entities in JOB_ENTITIES:
        yield from entities(config, jobs)
