# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The command line of simple_switch_grpc, as far as it differs from ours: what means nothing here is taken out and
named, once, with what to use instead (bmv2: src/bm_sim/options_parse.cpp, targets/simple_switch_grpc/main.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ignored:
    """An option without effect here: does a value follow it, and why or what instead."""

    value: bool
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


def adapted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The command line in our terms, and a phrase for each option that has no effect.

    "--" (BMv2 puts it before the options of the target) goes, and `--pcap` without a folder means this one.
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
            if option.value and not equals and rest:
                rest.pop(0)
            without_effect.append(f"{name} ({option.instead})")
            continue
        kept.append(argument)
        if argument == "--pcap" and not _has_value(rest):
            kept.append(".")
    return kept, without_effect


def reachable(address: str) -> str:
    """An address that means all of this machine's, as scripts write it for BMv2, cut down to the loopback one: without
    TLS whoever reaches P4Runtime can run code here."""
    host, colon, port = address.rpartition(":")
    return f"127.0.0.1{colon}{port}" if host in ("0.0.0.0", "[::]", "") else address


def _has_value(rest: Sequence[str]) -> bool:
    return bool(rest) and not rest[0].startswith("-") and not rest[0].endswith(".json")
