# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The P4 programs are compositions, and the table `verdict` is the whole state machine of
docs/reference/protocol.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import finsy as fy
import pytest

from netfold.p4src.tools import p4build

P4SRC = p4build.REPOSITORY / "p4src"
TOP_PAGES = [
    *sorted((P4SRC / "programs").glob("*.p4")),
    P4SRC / "v1model/netfold.p4",
    P4SRC / "tna/netfold.p4",
]
VERDICT = P4SRC / "common/verdict.p4"
PROTOCOL = p4build.REPOSITORY / "docs/reference/protocol.md"

KINDS = ("GRADIENT", "RESULT", "READ", "RESET")
AGES = ("OLDER", "NEWER", "SAME")
SEALS = ("OPEN", "SEALING", "SEALED", "LATE", "SLOT_REUSED", "BYPASS")
TTLS = (1, 64)
Case = tuple[str, str, str, str, int, int, int]
KEYS = ("role", "kind", "age", "seal", "duplicate", "complete", "ttl")

ROW = re.compile(r"ROW\((.*?)\)\s*:\s*(\w+)\((.*?)\);")


@pytest.mark.parametrize("page", TOP_PAGES, ids=lambda page: page.relative_to(P4SRC).as_posix())
def test_a_top_page_has_no_conditional(page: Path):
    assert re.findall(r"^\s*#\s*(?:if|ifdef|ifndef|else|elif)\b.*", page.read_text(), re.MULTILINE) == []


@pytest.mark.parametrize("parts", [["transport/none", "transport/roce"], ["quorum/off.p4", "quorum/on.p4"]])
def test_every_choice_defines_the_same_controls(parts: list[str]):
    def interface(part: str) -> set[str]:
        path = P4SRC / part
        text = "".join(f.read_text() for f in (sorted(path.glob("*.p4")) if path.is_dir() else [path]))
        return set(re.findall(r"^(?:control|parser) (\w+\(.*\)) \{", text, re.MULTILINE))

    empty, full = (interface(part) for part in parts)
    assert set() != empty <= full


def test_wire_p4_has_nothing_but_numbers():
    text = re.sub(r"//.*", "", (P4SRC / "common/wire.p4").read_text())
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"const [\w<>]+\s+\w+\s*=\s*-?\w+;", "", text)
    text = re.sub(r"enum bit<\d+> \w+ \{[\w\s=,]*\}", "", text)
    assert text.split() == []


def rows() -> list[tuple[tuple[str, ...], str]]:
    """Keys and outcome, the verdict's name or `reason`, of each row in the order of the source."""
    text = re.sub(r"//.*", "", VERDICT.read_text())
    verdicts = dict(re.findall(r"action (\w+)\(\) \{\s*meta\.verdict = verdict_t\.(\w+);", text))
    found = []
    for keys, action, argument in ROW.findall(VERDICT.read_text()):
        if action == "refuse":
            verdict = "reason"
        else:
            verdict = argument.removeprefix("verdict_t.") if action == "drop" else verdicts[action]
        found.append((tuple(k.strip() for k in keys.split(",")), verdict))
    return found


def outcome(case: Case, table: list[tuple[tuple[str, ...], str]]) -> str:
    for keys, verdict in table:
        if all(_matches(key, value) for key, value in zip(keys, case, strict=True)):
            return verdict
    return "MALFORMED"


def _matches(key: str, value: str | int) -> bool:
    if key == "_":
        return True
    if "&&&" in key:
        want, mask = (int(part, 0) for part in key.split("&&&"))
        return int(value) & mask == want
    return key.rsplit(".", 1)[-1] == str(value)


def documented() -> Iterator[tuple[Case, str]]:
    """The cases that sections 3.2 to 3.7 of docs/reference/protocol.md list, each with its verdict."""
    for kind, age, seal, duplicate, complete, ttl in product(KINDS, AGES, SEALS, (0, 1), (0, 1), TTLS):
        where = (kind, age, seal, duplicate, complete, ttl)
        yield ("NONE", *where), "reason"
        yield ("MANAGEMENT", *where), {"READ": "SLOT_READ", "RESET": "SLOT_RESET"}.get(kind, "MALFORMED")
        yield ("FORWARD", *where), "EXPIRED" if ttl < 2 else "FORWARDED"
        yield ("MULTICAST", *where), "EXPIRED" if ttl < 2 else "MULTICAST"
    slots = _table("### 3.2")
    quorums = _table("### 3.7")
    for kind, ttl in product(KINDS, TTLS):
        for (tag, bit, _, waiting, root, inner), complete in product(slots, (0, 1)):
            duplicates = {"any": (0,), "clear": (0,), "set": (1,)}[bit]
            for role, full in (("ROOT", root), ("INNER", inner)):
                verdict = _verdict(full if complete and full != "the same" else waiting)
                for duplicate in duplicates:
                    yield (role, kind, tag.upper(), "OPEN", duplicate, complete, ttl), verdict
        for tags, seal, _, inner, root in quorums:
            for role, cell in (("INNER", inner), ("ROOT", root)):
                if seal == "`OPEN`" or not cell:
                    continue  # 3.2, or no such case at this role
                verdict = "EXPIRED" if ttl < 2 and "`expired`" in cell else _verdict(cell)
                for tag, duplicate, complete in product(tags.split(", "), (0, 1), (0, 1)):
                    yield (role, kind, tag.upper(), seal.strip("`"), duplicate, complete, ttl), verdict


def _table(section: str) -> list[list[str]]:
    """The rows of the section's table whose first column is the tag."""
    text = PROTOCOL.read_text().replace("\\|", "")
    (body,) = re.findall(rf"^{section} .*?^\| tag (.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    lines = body.splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def _verdict(cell: str) -> str:
    return re.findall(r"`(\w+)`", cell)[0].upper()


def test_the_rows_of_verdict_are_the_documented_ones():
    table = rows()
    cases = dict(documented())
    assert {case: outcome(case, table) for case in cases} == cases
    assert {case[3] for case in cases} == set(SEALS)


def test_no_row_of_verdict_is_superfluous():
    table, cases = rows(), dict(documented())
    for row in range(len(table)):
        rest = table[:row] + table[row + 1 :]
        assert any(outcome(case, rest) != verdict for case, verdict in cases.items()), table[row]


def test_all_verdicts_are_reached():
    """By the table, by admission's reasons, or by EgressSelect."""
    (body,) = re.findall(
        r"enum bit<5> verdict_t \{(.*?)\}", (P4SRC / "common/wire.p4").read_text(), re.DOTALL
    )
    refused = {"UNADMITTED", "STALE_EPOCH", "BAD_SLOT"}
    reached = {verdict for _, verdict in rows()} - {"reason"} | refused | {"NONE", "MALFORMED", "UNROUTED"}
    assert reached == set(re.findall(r"(\w+)\s*=", body))


@pytest.mark.parametrize("profile", p4build.PROFILES, ids=lambda profile: profile.name)
def test_the_compiled_verdict_has_these_keys(profile: p4build.Profile):
    schema = fy.P4Schema(P4SRC / "compiled" / profile.p4info)
    assert tuple(field.alias for field in schema.tables["verdict"].match_fields) == KEYS
