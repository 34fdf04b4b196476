# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What of the traffic of others counts."""

from __future__ import annotations

NOISE = 0.02
"""Of a link's rate: less foreign load is nobody's business (ARP, an operator's terminal, the controller's probes)."""

MOST = 0.9
"""Of a link's rate: foreign load counts for no more. It may be elastic, and gives way to whoever comes."""


def reckoned(load: float, rate: float) -> float:
    """What a plan has to reckon with where so much is sent over a link of `rate`; 0: nothing."""
    return min(load, MOST * rate) if load > NOISE * rate else 0.0
