# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Files of tokens, of the controller's service and of the page."""

from __future__ import annotations

from pathlib import Path

from netfold.controller.operator.controller_client import BAD_INPUT, fail

MIN_TOKEN_LENGTH = 16


def read_tokens(file: Path) -> frozenset[str]:
    """Ends the command if the file cannot be read, or has no tokens or short ones."""
    try:
        tokens = frozenset(file.read_text().split())
    except (OSError, UnicodeDecodeError) as error:
        fail(BAD_INPUT, str(error))
    if not tokens or any(len(t) < MIN_TOKEN_LENGTH for t in tokens):
        fail(BAD_INPUT, f"{file}: expected at least one token, each of {MIN_TOKEN_LENGTH} characters or more")
    return tokens
