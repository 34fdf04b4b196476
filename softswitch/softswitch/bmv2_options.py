# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""simple_switch_grpc's command line: options without effect here are removed and named once, with the alternative
(bmv2: src/bm_sim/options_parse.cpp, targets/simple_switch_grpc/main.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ignored:
    """An option without effect here: whether a value follows it, and the reason or the alternative."""

    takes_value: bool
    instead: str


IGNORED: dict[str, Ignored] = {
    "--nanolog": Ignored(True, "no event log; see --log-console"),
    "--notifications-addr": Ignored(True, "digests and idle notices go to P4Runtime"),
    "--debugger": Ignored(False, "no debugger; see --log-console"),
    "--debugger-addr": Ignored(True, "no debugger; see --log-console"),
    "--restore-state": Ignored(True, "state is not restored"),
    "--use-files": Ignored(True, "packets come from interfaces only; see --pcap"),
    "--packet-in": Ignored(True, "packets come from interfaces only"),
    "--dp-grpc-server-addr": Ignored(True, "packets come from interfaces only"),
    "--max-port-count": Ignored(True, "ports are not bounded"),
    "--max-mc-groups": Ignored(True, "65,535 groups"),
    "--max-l1-entries": Ignored(True, "not bounded"),
    "--max-l2-entries": Ignored(True, "not bounded"),
    "--disable-swap": Ignored(False, "programs can always be swapped"),
}


def without_ignored_options(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The command line without ignored options, and a phrase for each of these.

    Removes "--", which BMv2 puts before the target's options. `--pcap` without a folder is the current folder.
    """
    kept: list[str] = []
    without_effect: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, _ = argument.partition("=")
        if argument == "--":
            continue
        if name in IGNORED:
            option = IGNORED[name]
            if option.takes_value and not equals and rest:
                rest.pop(0)
            without_effect.append(f"{name} ({option.instead})")
            continue
        kept.append(argument)
        if argument == "--pcap" and not _has_value(rest):
            kept.append(".")
    return kept, without_effect


def loopback_of(address: str) -> str:
    """The loopback form of an address of all interfaces, as BMv2 scripts write it: without TLS every client that
    reaches P4Runtime can run code here."""
    host, colon, port = address.rpartition(":")
    return f"127.0.0.1{colon}{port}" if host in ("0.0.0.0", "[::]", "") else address


def _has_value(rest: Sequence[str]) -> bool:
    return bool(rest) and not rest[0].startswith("-") and not rest[0].endswith(".json")
