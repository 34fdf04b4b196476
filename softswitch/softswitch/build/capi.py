# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""ctypes declarations of the core's control functions (core/control.h)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_uint8, c_uint32, c_uint64, c_void_p

NONE = 0xFFFFFFFF
ACTION, MEMBER, GROUP = 0, 1, 2
E_MEMORY = -1
DIGEST_MAX = 4096
PORT_MAX = 65535
FRAME_MAX = 65535
THREADS_MAX = 16


class ActionSpec(Structure):
    _fields_ = (("kind", c_uint32), ("index", c_uint32), ("words", c_uint32), ("data", POINTER(c_uint64)))


class Counter(Structure):
    _fields_ = (("packets", c_uint64), ("bytes", c_uint64))


class ReplicaC(Structure):
    _fields_ = (("port", c_uint32), ("rid", c_uint32))


class EventC(Structure):
    _fields_ = (
        ("kind", c_uint32),
        ("object", c_uint32),
        ("handle", c_uint32),
        ("bytes", c_uint32),
        ("generation", c_uint32),
        ("time_ns", c_uint64),
        ("data", c_void_p),
    )


class PortStats(Structure):
    _fields_ = tuple(
        (name, c_uint64)
        for name in ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "queue_drops", "queue_depth")
    )


class Stats(Structure):
    _fields_ = tuple(
        (name, c_uint64)
        for name in (
            "rx_oversize", "no_pipeline", "ingress_drops", "egress_drops", "bad_port", "bad_clone",
            "empty_group", "loops_cut", "too_long", "swap_drops", "asserts_failed", "events_lost", "no_memory",
            "handed_over",
        )
    )  # fmt: skip


TX = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, POINTER(c_uint8), c_uint32)
HANDOVER = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_uint32, POINTER(c_uint8), c_uint32)
LOG = ctypes.CFUNCTYPE(None, c_void_p, ctypes.c_char, c_char_p)
WORDS = POINTER(c_uint64)

_FUNCTIONS: dict[str, tuple[object, tuple[object, ...]]] = {
    "ss_switch_new": (c_void_p, (c_uint32, c_uint64, c_uint64)),
    "ss_switch_free": (None, (c_void_p,)),
    "ss_set_tx": (None, (c_void_p, TX, c_void_p)),
    "ss_set_log": (None, (c_void_p, LOG, c_void_p)),
    "ss_set_dump": (None, (c_void_p, c_uint32)),
    "ss_set_threads": (c_int, (c_void_p, c_uint32)),
    "ss_switch_shard": (c_void_p, (c_void_p, c_uint32)),
    "ss_set_handover": (None, (c_void_p, HANDOVER, c_void_p)),
    "ss_begin": (None, (c_void_p,)),
    "ss_end": (None, (c_void_p,)),
    "ss_receive": (None, (c_void_p, c_uint32, c_char_p, c_uint32, c_uint64)),
    "ss_service": (c_uint64, (c_void_p, c_uint64)),
    "ss_set_queues": (c_int, (c_void_p, c_uint32)),
    "ss_queue_config": (c_int, (c_void_p, c_uint32, c_uint32, c_uint64, c_uint64)),
    "ss_port_config": (c_int, (c_void_p, c_uint32, c_uint64, c_uint32)),
    "ss_port_set_up": (c_int, (c_void_p, c_uint32, c_int)),
    "ss_port_stats_get": (c_int, (c_void_p, c_uint32, POINTER(PortStats))),
    "ss_stats_get": (None, (c_void_p, POINTER(Stats))),
    "ss_event_fd": (c_int, (c_void_p,)),
    "ss_event_take": (c_int, (c_void_p, POINTER(EventC), c_char_p)),
    "ss_pipeline_open": (c_void_p, (c_char_p, c_uint64, c_uint32, c_char_p, c_uint32)),
    "ss_pipeline_close": (None, (c_void_p,)),
    "ss_swap": (c_void_p, (c_void_p, c_void_p)),
    "ss_entry_add": (
        c_int64,
        (c_void_p, c_uint32, WORDS, WORDS, c_int64, WORDS, POINTER(ActionSpec), c_uint64),
    ),
    "ss_entry_set": (c_int, (c_void_p, c_uint32, c_uint32, POINTER(ActionSpec), c_uint64)),
    "ss_entry_del": (c_int, (c_void_p, c_uint32, c_uint32)),
    "ss_default_set": (c_int, (c_void_p, c_uint32, POINTER(ActionSpec))),
    "ss_entry_counter": (c_int, (c_void_p, c_uint32, c_uint32, POINTER(Counter), c_int)),
    "ss_entry_meter": (c_int, (c_void_p, c_uint32, c_uint32, WORDS)),
    "ss_entry_idle": (c_int, (c_void_p, c_uint32, c_uint32, WORDS)),
    "ss_member_set": (c_int, (c_void_p, c_uint32, c_uint32, POINTER(ActionSpec))),
    "ss_group_set": (
        c_int,
        (c_void_p, c_uint32, c_uint32, POINTER(c_uint32), POINTER(c_uint32), c_uint32),
    ),
    "ss_counter_io": (c_int, (c_void_p, c_uint32, c_uint32, c_uint32, POINTER(Counter), c_int)),
    "ss_generation": (c_uint32, (c_void_p,)),
    "ss_meter_set": (c_int, (c_void_p, c_uint32, c_uint32, c_uint32, WORDS)),
    "ss_register_io": (c_int, (c_void_p, c_uint32, c_uint32, c_uint32, c_char_p, c_int)),
    "ss_vset_set": (c_int, (c_void_p, c_uint32, WORDS, c_uint32)),
    "ss_group_replicas": (c_int, (c_void_p, c_uint32, POINTER(ReplicaC), c_uint32)),
    "ss_clone_replicas": (c_int, (c_void_p, c_uint32, POINTER(ReplicaC), c_uint32, c_uint32)),
    "ss_digest_enable": (c_int, (c_void_p, c_uint32, c_int)),
}


def declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Sets the argument and result types of all functions."""
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = list(arguments)
    return library


def words(values: Sequence[int]) -> ctypes.Array[c_uint64]:
    """An array of 64-bit words, at least one."""
    return (c_uint64 * max(1, len(values)))(*values)


def action_spec(kind: int, index: int, data: Sequence[int] = ()) -> ActionSpec:
    return ActionSpec(kind, index, len(data), words(data))
