# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Who submits a job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Submitter:
    """`name`, `tenant`: "": the caller has none, as at a Unix socket."""

    name: str = ""
    tenant: str = ""


UNNAMED = Submitter()
