# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Files that hosts of repositories and catalogs read: CI runs what .ci/run runs, and versions are the package's."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
import yaml

from tests.house.imports import REPOSITORY


def read(name: str) -> Any:
    return yaml.safe_load((REPOSITORY / name).read_text())


def test_the_citation_has_the_packages_version():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert read("CITATION.cff")["version"] == project["version"]


def test_github_runs_ci_with_the_whole_history():
    (job,) = read(".github/workflows/ci.yml")["jobs"].values()
    assert job["steps"][-1] == {"run": ".ci/run"}
    assert [s["with"] for s in job["steps"] if "uses" in s] == [{"fetch-depth": 0}]


def test_gitlab_runs_ci_with_the_whole_history():
    job = read(".gitlab-ci.yml")["ci"]
    assert job["script"] == [".ci/run"]
    assert job["variables"] == {"GIT_DEPTH": 0}


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_forms_of_issues_have_what_github_needs(name: str):
    form = read(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert {"name", "description", "body"} <= form.keys()
    assert all("label" in field["attributes"] for field in form["body"])
