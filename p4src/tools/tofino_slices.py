# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Keys that are a part of a field, as the drivers' own P4Runtime server can write them.

p4lang/PI lays a key out by the widths of the P4Info, where such a part counts for itself; the drivers read it by those
of context.json, where it counts for the whole field. So what follows in the key is read too late, and the last field
from behind its end, whatever is there. Here the part becomes a field of its own in the context, which says the same of
the table's memory. Stratum writes by BF-RT, which knows such parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from netfold.p4src.tools.p4build import P4BuildError

_TERNARY = "ternary_match"


def without_slices(context: bytes) -> bytes:
    """A context.json of which every key counts for itself. Raises P4BuildError for an exact key that is a part of a
    field: such a table's hash would have to change too."""
    document = json.loads(context)
    for table in document.get("tables", []):
        first_bits = {k["name"]: k["start_bit"] for k in _slices(table)}
        for stage in table.get("match_attributes", {}).get("stage_tables", []) if first_bits else []:
            if stage["stage_table_type"] != _TERNARY:
                raise P4BuildError(
                    f"table {table['name']}: {', '.join(first_bits)} is a part of a field, which the drivers' "
                    "P4Runtime server can only match where the table is ternary"
                )
            for field in _placed(stage):
                field["start_bit"] -= first_bits.get(field["field_name"], 0)
        for key in _slices(table):
            key.update(start_bit=0, bit_width_full=key["bit_width"])
    return json.dumps(document).encode()


def _slices(table: dict[str, Any]) -> list[dict[str, Any]]:
    keys = table.get("match_key_fields", [])
    return [k for k in keys if k["start_bit"] != 0 or k["bit_width"] != k["bit_width_full"]]


def _placed(stage: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The bits of the key in the words of the TCAM."""
    for pack in stage["pack_format"]:
        for entry in pack["entries"]:
            yield from (f for f in entry["fields"] if f["source"] == "spec")
