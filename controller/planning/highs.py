# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the solver HiGHS with the options that all programs share."""

from __future__ import annotations

import highspy


class _SilentHighs(highspy.Highs):  # type: ignore[misc]
    """HiGHS without its banner, which newer versions print when the constructor enables the callbacks, before an option
    can be set. Standard output belongs to the command."""

    def enableCallbacks(self) -> None:  # noqa: N802 (of highspy)
        self.silent()
        super().enableCallbacks()


def new_solver() -> highspy.Highs:
    """A solver without output, with one thread and a fixed seed, so that every run has the same result."""
    solver = _SilentHighs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 0)
    return solver
