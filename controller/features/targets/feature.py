# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Implements targets as a feature of every job: a block of a scatter goes to its owner alone, and a block of a gather
comes from its owner alone."""

from __future__ import annotations

from collections.abc import Iterator

from netfold.controller.features.feature import Feature
from netfold.controller.features.targets.entries import TargetTree
from netfold.controller.jobs.file import JobFile, TargetsOption
from netfold.controller.jobs.records import JobRecord
from netfold.controller.switches.tree_feature import InstalledTree, TreeFeature
from netfold.protocol.target import Targets
from netfold.topologies.fabric import Fabric


class TargetsFeature(Feature):
    def is_in(self, file: JobFile) -> bool:
        return file.targets is not TargetsOption.OFF

    def is_used_by(self, job: JobRecord) -> bool:
        """The explanation of every job with workers says whether it has targets."""
        return job.placement is not None and not job.sandbox

    def tree_feature(self, installed: InstalledTree) -> TreeFeature | None:
        return TargetTree(installed) if installed.numbers.targets is Targets.ON else None

    def explain(self, fabric: Fabric, job: JobRecord) -> Iterator[str]:
        assert job.placement is not None
        if job.placement.targets is Targets.ON:
            yield (
                "Its packets have targets: a reduce-scatter brings each worker its own block, an all-gather those of "
                "the others."
            )
        else:
            because = job.placement.no_targets_because
            yield f"Its packets have no targets, so all its calls are sums: {because}."
