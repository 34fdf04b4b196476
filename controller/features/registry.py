# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Lists the features of jobs. A new feature is a folder like quorum/ and an entry here."""

from __future__ import annotations

from netfold.controller.features.feature import Feature
from netfold.controller.features.quorum.feature import QuorumFeature
from netfold.controller.features.roce.feature import RoceFeature
from netfold.controller.features.targets.feature import TargetsFeature
from netfold.controller.jobs.file import JobFile
from netfold.controller.jobs.records import JobRecord

FEATURES: tuple[Feature, ...] = (RoceFeature(), QuorumFeature(), TargetsFeature())


def features_in(file: JobFile) -> list[Feature]:
    """The features that a job file requests."""
    return [feature for feature in FEATURES if feature.is_in(file)]


def features_of(job: JobRecord) -> list[Feature]:
    """The features of a job."""
    return [feature for feature in FEATURES if feature.is_used_by(job)]
