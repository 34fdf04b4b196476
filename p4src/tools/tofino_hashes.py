# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The hashes of flows in p4c's assembly: which bits each takes of which CRC of which fields. They are committed with
the report of a program's resources, so that what a chip computes can be followed without its compiler."""

from __future__ import annotations

import re

from netfold.p4src.tools.p4build import P4BuildError

_TABLES = {
    "flow_1": r"hash_action \S*digest_flow ",
    "flow_2": r"hash_action \S*digest_flow_again ",
    "choice": r"selection \S*ipv4_routes\S*selector\.",
}
_LINE = re.compile(r"^ +(\d+\.\.\d+: .*crc.*|seed: \w+)$", re.MULTILINE)


def flow_hashes(assembly: str) -> dict[str, list[str]]:
    """The lines of each hash in their order: bits of the hash matrix, and constants that are added to them. Raises
    P4BuildError."""
    found = {}
    for name, table in _TABLES.items():
        body = re.search(rf"^  {table}.*\n((?:^   .*\n)+)", assembly, re.MULTILINE)
        lines = _LINE.findall(body[1]) if body else []
        if not lines:
            raise P4BuildError(f"the assembly has no hash '{name}' of flows, a table like {table.strip()}")
        found[name] = lines
    return found
