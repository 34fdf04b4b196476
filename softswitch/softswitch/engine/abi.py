# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""ctypes declarations of the engine's structures and functions (engine.h, interface.h, fault_injector.h)."""

from __future__ import annotations

import ctypes
import functools
from ctypes import (
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path

from softswitch.build.native import HIDDEN, build_shared, core_library

IF_NAMESIZE = 16
KIND_NAME = 8
DIRECTIONS = 2


class FaultSettings(ctypes.Structure):
    """struct ss_fault_settings."""

    _fields_ = (
        ("loss", c_double),
        ("duplicate", c_double),
        ("reorder", c_double),
        ("corrupt", c_double),
        ("delay_ns", c_uint64),
        ("jitter_ns", c_uint64),
        ("reorder_gap", c_uint32),
        ("reorder_hold_ns", c_uint64),
        ("seed", c_uint64),
    )


class InterfaceCounters(ctypes.Structure):
    """struct ss_interface_counters."""

    _fields_ = tuple(
        (name, c_uint64)
        for name in (
            "rx_packets",
            "rx_bytes",
            "rx_dropped",
            "rx_oversize",
            "tx_packets",
            "tx_bytes",
            "tx_dropped",
            "tx_oversize",
        )
    )


class FaultCounters(ctypes.Structure):
    """struct ss_fault_counters."""

    _fields_ = tuple(
        (name, c_uint64) for name in ("lost", "duplicated", "reordered", "corrupted", "delayed", "overflowed")
    )


class PortStatus(ctypes.Structure):
    """struct ss_engine_port_status."""

    _fields_ = (
        ("number", c_uint32),
        ("up", c_uint32),
        ("oper_up", c_uint32),
        ("merges", c_uint32),
        ("zero_copy", c_uint32),
        ("error", c_int32),
        ("ifname", c_char * IF_NAMESIZE),
        ("kind", c_char * KIND_NAME),
        ("counters", InterfaceCounters),
        ("faults", FaultCounters * DIRECTIONS),
        ("fault_settings", FaultSettings * DIRECTIONS),
    )


class EngineStats(ctypes.Structure):
    """struct ss_engine_stats."""

    _fields_ = tuple(
        (name, c_uint64) for name in ("batches", "sleeps", "unknown_port", "packet_in_lost", "cpu_ns")
    )


class SockFilter(ctypes.Structure):
    """struct sock_filter."""

    _fields_ = (("code", c_uint16), ("jt", c_uint8), ("jf", c_uint8), ("k", c_uint32))


@functools.cache
def engine_library(cache_dir: Path) -> ctypes.CDLL:
    """The engine, built when needed, once per process. The core is loaded first: the engine calls it. Raises
    PipelineError."""
    core_library()
    folder = Path(__file__).parent
    path = build_shared(
        sorted(folder.glob("*.c")),
        cache_dir,
        name="engine",
        flags=("-pthread", *HIDDEN),
        headers=sorted(folder.glob("*.h")),
    )
    library = ctypes.CDLL(str(path), use_errno=True)
    _declare(library)
    return library


def _declare(library: ctypes.CDLL) -> None:
    status, stats = ctypes.POINTER(PortStatus), ctypes.POINTER(EngineStats)
    for name, result, arguments in (
        ("ss_engine_new", c_void_p, (c_void_p, c_uint32)),
        ("ss_engine_join", c_int, (ctypes.POINTER(c_void_p), c_uint32)),
        ("ss_engine_set_steering", c_int, (c_void_p, ctypes.POINTER(SockFilter), c_uint32)),
        ("ss_engine_start", c_int, (c_void_p,)),
        ("ss_engine_stop", None, (c_void_p,)),
        ("ss_engine_free", None, (c_void_p,)),
        ("ss_engine_add_port", c_int, (c_void_p, c_uint32, c_char_p)),
        ("ss_engine_add_socket", c_int, (c_void_p, c_uint32, c_char_p, c_int)),
        ("ss_engine_add_xdp", c_int, (c_void_p, c_uint32, c_char_p, c_int, c_int)),
        ("ss_engine_add_device", c_int, (c_void_p, c_uint32, c_char_p, c_void_p, c_char_p, c_uint32)),
        ("ss_xdp_load", c_int, (c_uint32, ctypes.POINTER(c_int), ctypes.POINTER(c_int))),
        ("ss_engine_port_change_fd", c_int, (c_void_p,)),
        ("ss_engine_remove_port", c_int, (c_void_p, c_uint32)),
        ("ss_engine_set_faults", c_int, (c_void_p, c_uint32, c_int, ctypes.POINTER(FaultSettings))),
        ("ss_engine_set_gso", None, (c_void_p, c_int, c_uint32, c_uint32)),
        ("ss_engine_set_capture", c_int, (c_void_p, c_char_p)),
        ("ss_engine_ports", c_uint32, (c_void_p, status, c_uint32)),
        ("ss_engine_stats_get", None, (c_void_p, stats)),
        ("ss_engine_service", None, (c_void_p,)),
        ("ss_engine_packet_out", c_int, (c_void_p, c_char_p, c_uint32)),
        ("ss_engine_packet_in_fd", c_int, (c_void_p,)),
        ("ss_engine_packet_in", c_int64, (c_void_p, ctypes.POINTER(c_uint8), c_uint32)),
    ):
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
