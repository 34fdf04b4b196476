# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Faults of changes of the fabric's file (mutant.py)."""

from __future__ import annotations

from tests.simulation.mutant import Mutant

CHANGES = "scheduling/fabric_changes.py"
REGISTRY = "lifecycle/job_registry.py"

FABRIC_MUTANTS = (
    Mutant(
        "a new fabric is numbered by position",
        CHANGES,
        "return numbered(self._equip(parse_fabric(text, source)), known)",
        "return numbered(self._equip(parse_fabric(text, source)))",
        "a host, a spine and a leaf come while a job runs",
    ),
    Mutant(
        "numbers of a name that is gone are forgotten",
        REGISTRY,
        "self._store.set_fabric(fabric, numbers)",
        'self._store.set_fabric(fabric, "")',
        "a host comes after another one is gone",
    ),
    Mutant(
        "what a job uses may go",
        CHANGES,
        "        if dry_run or change.is_refused or not elements:",
        "        if dry_run or not elements:",
        "a leaf that a job uses goes",
    ),
    Mutant(
        "what a job uses may shrink",
        CHANGES,
        '    if not difference.takes:\n        return ""',
        '    if difference.text != "goes":\n        return ""',
        "a link that a job uses shrinks",
    ),
    Mutant(
        "a host of a job that waits may go",
        CHANGES,
        "        live = [j for j in registry.all() if not j.state.is_terminal]",
        "        live = [j for j in registry.all() if j.state.is_installed]",
        "a host of a job that waits goes",
    ),
    Mutant(
        "a withdrawn element that is gone stays withdrawn",
        REGISTRY,
        "                if not element_named(self._config.fabric, withdrawal.element) - removed:",
        "                if False:",
        "a drained spine goes",
    ),
    Mutant(
        "the controller of the old fabric writes on",
        REGISTRY,
        "        self.retire()\n",
        "",
        "a spine goes while a job is planned over it",
    ),
    Mutant(
        "no other controller takes the place of the old fabric's",
        CHANGES,
        "        self.applied.set()\n",
        "",
        "a host, a spine and a leaf come while a job runs",
    ),
    Mutant(
        "a link that a job uses may shrink",
        CHANGES,
        "    return any(difference.link in placement.links for placement in job.placements)",
        "    return False",
        "a link that a job uses shrinks",
    ),
)
