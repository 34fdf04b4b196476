# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The classic BPF program with which the kernel deals the frames of a port to threads (fanout.h)."""

from __future__ import annotations

from dataclasses import dataclass

from softswitch.translate.steering import Check, Steering

CELLS = 16
"""SS_SHARD_CELLS of runtime/program.h: consecutive cells of one thread."""

# <linux/bpf_common.h>, <linux/filter.h>
_LOAD_ABSOLUTE = {4: 0x20, 2: 0x28, 1: 0x30}
_AND, _SHIFT_RIGHT, _JUMP_EQUAL, _RETURN_A = 0x54, 0x74, 0x15, 0x16
_LINK_LAYER = 0xFFE00000  # SKF_LL_OFF: offsets from the link-layer header, in the linear part of a frame
_ETHERNET_BYTES = 14
_FLOW_HASH = 0xFFFFF000 + 32  # SKF_AD_OFF + SKF_AD_RXHASH
_HAS_VLAN_TAG = 0xFFFFF000 + 48  # SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT

_IS_IPV4 = Check(12, 2, 0xFFFF, 0x0800)
_OF_A_RUN = frozenset({16, 17, 18, 19, 24, 25, 38, 39, 40, 41})
"""Bytes of an IPv4 frame without options in which a run of datagrams differs from each of them: lengths, checksums,
identification. The program sees a run as the kernel carries it, whole (segments.h)."""


@dataclass(frozen=True)
class Step:
    """struct sock_filter."""

    code: int
    k: int
    jt: int = 0
    jf: int = 0


def steering_program(steering: Steering | None, threads: int) -> tuple[Step, ...]:
    """Returns the thread of a frame, or of a run's first one: by its field, if it passes the checks, otherwise by the
    hash of its flow."""
    by_flow = (Step(_LOAD_ABSOLUTE[4], _FLOW_HASH), Step(_AND, threads - 1), Step(_RETURN_A, 0))
    if steering is None:
        return by_flow
    shift = CELLS.bit_length() - 1
    by_field = (
        Step(_LOAD_ABSOLUTE[1], _position(steering.offset)),
        Step(_SHIFT_RIGHT, shift),
        Step(_AND, threads - 1),
        Step(_RETURN_A, 0),
    )
    # The kernel keeps a VLAN tag apart from the frame, so its fields are not where the parser finds them.
    checks = [[Step(_LOAD_ABSOLUTE[4], _HAS_VLAN_TAG), Step(_JUMP_EQUAL, 0)]]
    for check in filter(lambda check: not _changes_in_runs(check, steering), steering.checks):
        load = Step(_LOAD_ABSOLUTE[check.size], _position(check.offset))
        checks.append([load, Step(_AND, check.mask), Step(_JUMP_EQUAL, check.value)])
    length = sum(map(len, checks)) + len(by_field)
    steps: list[Step] = []
    for check_steps in checks:
        steps += check_steps
        steps[-1] = Step(_JUMP_EQUAL, steps[-1].k, 0, length - len(steps))
    return (*steps, *by_field, *by_flow)


def _position(offset: int) -> int:
    """From the network header on: the payload of a run lies in pages, where Linux before 6.16 finds no other offset."""
    return offset - _ETHERNET_BYTES if offset >= _ETHERNET_BYTES else _LINK_LAYER + offset


def _changes_in_runs(check: Check, steering: Steering) -> bool:
    return _IS_IPV4 in steering.checks and not _OF_A_RUN.isdisjoint(
        range(check.offset, check.offset + check.size)
    )
