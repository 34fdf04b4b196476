# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Each of netfold's own errors has an entry in docs/how-to/troubleshooting.md, unless no user meets it."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house.imports import REPOSITORY

PACKAGES = ("controller", "protocol", "simulator", "testbed", "topologies", "traffic", "p4src", "evaluation")
PAGE = REPOSITORY / "docs/how-to/troubleshooting.md"

INTERNAL = {
    "CallFailedError": "a command prints its message",
    "AnswerError": "a switch whose counters do not fit is reported as unreachable",
    "ForeignStateError": "the controller pushes the pipeline again",
    "ReplacedError": "the call is made again of the next controller",
    "FolderError": "becomes a ConnectError, ListenError or NetworkError",
    "IdentitiesError": "becomes a SecurityFileError",
    "InvalidPlanError": "a defect of a planner, by the validator",
    "IssuerError": "becomes an IdentitiesError",
    "ManifestError": "becomes a FabricError",
    "NoSolutionError": "a planner tries another way",
    "RegistrationError": "becomes a NotAMemberError, which a member meets as a JobRefusedError",
    "SecurityFileError": "the command ends with its message, or logs it at SIGHUP",
    "TokenRefusedError": "the call is refused with its message",
    "ShellEndedError": "becomes a NamespaceError, or is met while a network is taken down",
    "SlotsExhaustedError": "becomes a RefusedError",
    "SourceError": "the page shows its message",
    "StandbyJoinError": "a StandbyError with another status code",
    "TrafficError": "the base class",
    "UnknownEntityError": "the controller removes the entity",
    "WorkerEndedError": "the agent cancels the job or leaves its lease to expire, and the other workers report that",
    "WorkerMessageError": "the agent ends the worker, which reports a JobFailedError",
}
"""Errors without an entry, each with the reason."""


def own_errors() -> set[str]:
    return {
        node.name
        for package in PACKAGES
        for path in (REPOSITORY / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error") and not node.name.startswith("_")
    }


def entries() -> list[str]:
    return re.findall(r"^### (\w+)$", PAGE.read_text(), re.MULTILINE)


def test_each_error_has_an_entry():
    assert own_errors() - set(entries()) - set(INTERNAL) == set(), "errors that a user meets without an entry"


def test_each_entry_is_of_an_error():
    assert set(entries()) - own_errors() == set()
    assert set(INTERNAL) - own_errors() == set()
    assert len(entries()) == len(set(entries()))


@pytest.mark.parametrize("entry", entries())
def test_an_entry_says_what_it_means_and_what_to_do(entry: str):
    text = PAGE.read_text().partition(f"### {entry}\n")[2].partition("\n### ")[0]
    meaning, _, remedy = text.partition("**Do:**")
    assert len(meaning.split()) >= 4
    assert len(remedy.split()) >= 2
