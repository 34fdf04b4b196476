# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Mends errors of p4c in the parsers of its assembly, and refuses assembly with those that cannot be mended."""

from __future__ import annotations

import re
from collections.abc import Iterator

from netfold.p4src.tools.p4build import P4BuildError

_PARSER = re.compile(r"^parser (\w+):\n((?:^[ \t].*\n|\n)*)", re.MULTILINE)
_BIT_BY_BIT = re.compile(r"^  bitwise_or: \[(.*)\]\n", re.MULTILINE)


def check_parsers(assembly: str) -> None:
    """Both parsers look at what they branch on: p4c of February to September 2026 (1.2.5.16 among it) loses what is
    not in a scratch register of the parser's, all that there is on Tofino, without a word (p4lang/p4c, pull requests
    5063 and 5753), and takes every packet for the controller's. Raises P4BuildError."""
    parsers = dict(_PARSER.findall(assembly))
    for direction in ("ingress", "egress"):
        blind = _blind_state(parsers.get(direction, ""))
        if blind is not None:
            raise P4BuildError(
                f"the compiler has lost what the {direction} parser branches on ({blind}): use a p4c with its pull "
                "request 5753"
            )


def _blind_state(parser: str) -> str | None:
    """Describe a state of a parser that has several successors and nothing to choose by; None if there is none."""
    if not re.search(r"^ +match: *\[", parser, re.MULTILINE):
        return "no state of its assembly has a `match`"
    for state in re.split(r"^    (?=\S)", parser, flags=re.MULTILINE):
        if len(re.findall(r"^ +\*:", state, re.MULTILINE)) > 1:
            return f"state {state.partition(':')[0]} of its assembly has no `match`"
    return None


def share_with_checksums(assembly: str) -> str:
    """The same, with a container in which a checksum's verdict and states of a parser write bits of their own among
    those that are written bit by bit (`bitwise_or`). p4c (1.2.5.16) lists there what states share, not what a state
    and a verdict do, and to write to any other container twice is an error: Tofino 2's model dropped every gradient."""

    def mended(parser: re.Match[str]) -> str:
        direction, body = parser.groups()
        listed = _BIT_BY_BIT.search(body)
        names = [x.strip() for x in listed[1].split(",")] if listed else []
        missing = sorted(set(_shared_with_verdicts(body)) - {*names})
        if not missing:
            return parser[0]
        line = f"  bitwise_or: [ {', '.join([*names, *missing])} ]\n"
        return f"parser {direction}:\n{line}{_BIT_BY_BIT.sub('', body)}"

    return _PARSER.sub(mended, assembly)


def _shared_with_verdicts(parser: str) -> Iterator[str]:
    written = re.findall(r"^ +([A-Z]+\d+): (\d+)", parser, re.MULTILINE)
    for verdict, bit in re.findall(r"^ +dest: (\w+)\((\d+)\)", parser, re.MULTILINE):
        if any(name == verdict and int(value) & ~(1 << int(bit)) for name, value in written):
            yield verdict
