# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Says at the end of a run how much the model checker has explored."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    proofs = [
        dict(report.user_properties)
        for report in terminalreporter.stats.get("passed", [])
        if "states" in dict(report.user_properties)
    ]
    if proofs:
        states, steps = (sum(proof[key] for proof in proofs) for key in ("states", "steps"))
        terminalreporter.write_line(f"model check: {len(proofs)} systems, {states:,} states, {steps:,} steps")
