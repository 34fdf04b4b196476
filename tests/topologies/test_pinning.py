# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A fabric's numbers are written into its file, whatever the form of the file."""

from __future__ import annotations

import pytest

from netfold.topologies.address_assignment import Numbers, numbered
from netfold.topologies.fabric import FabricError
from netfold.topologies.pinning import pinned_text
from netfold.topologies.spec import parse_fabric

FILE = """# Kühlung geprüft
name: rack
defaults: {link: {rate: 100}}
switches:
  s1: {role: leaf}  # in the cellar
  s2: {}
hosts:
  h1:
    # the slow one
    at: s1
  h2: {at: s2}
links: [{between: [s1, s2]}]
"""
TUTORIALS = '{"hosts": {"h1": {}}, "switches": {"s1": {}}, "links": [["h1", "s1-p1"]]}'


def _pinned(text: str) -> str:
    return pinned_text(text, "rack.yaml", numbered(parse_fabric(text, "rack.yaml")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("\n", "\r\n"),
        ("# K", "\ufeff# K"),
        ("[s1, s2]}]\n", "[s1, s2]}]"),
        ("s1: {role", "s1: &rack {role"),
        ("s1: {role", "s1: !!map {role"),
        ("s2: {}", "s2: &empty {}"),
        ("h1:\n", "h1: &host\n"),
        ("    at: s1", "    ? at\n    : s1"),
        ("s2: {}", "s2: { # a comment\n    }"),
    ],
    ids=["as-is", "crlf", "bom", "no-end", "anchor", "tag", "empty", "block", "explicit", "lines"],
)
def test_the_file_alone_gives_the_numbers_and_all_else_stays(old: str, new: str) -> None:
    text = FILE.replace(old, new) if old else FILE
    pinned = _pinned(text)
    fabric = parse_fabric(pinned, "rack.yaml")
    assert Numbers.of(fabric) == Numbers.of(numbered(parse_fabric(text, "rack.yaml")))
    assert [c for c in text if c not in "{}"] == [*_common(text, pinned)]
    assert _pinned(pinned) == pinned


def _common(text: str, longer: str) -> list[str]:
    """The characters of `text` that are in `longer`, in their order."""
    rest = iter(longer)
    return [c for c in text if c not in "{}" and c in rest]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FILE.replace("s2: {}", "s2: {prefix: null}"), "rack.yaml: its form does not take the numbers"),
        (FILE.replace("s2: {}", "s2: {ports: {}}"), "rack.yaml: its form does not take the numbers"),
        (TUTORIALS, "rack.yaml: its form does not take the numbers"),
        (FILE.replace("h2: {", "h0: &h {at: s2}\n  h3: *h\n  h2: {"), r"'hosts.h3' is an alias"),
        ("name: a\ngenerate: {single_switch: {hosts: 2}}", "lists no 'switches'"),
    ],
    ids=["null", "ports", "tutorials", "alias", "generator"],
)
def test_a_form_without_a_place_for_numbers_is_refused(text: str, message: str) -> None:
    with pytest.raises(FabricError, match=message):
        _pinned(text)
