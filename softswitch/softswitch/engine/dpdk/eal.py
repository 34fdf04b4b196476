# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Builds and loads the library of DPDK ports, and initializes DPDK's environment (EAL) once a process."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from softswitch.build.native import ANSWER_S, HIDDEN, RUNTIME, build_shared
from softswitch.engine.dpdk.device import DpdkDevice, DpdkError

_HERE = Path(__file__).parent
_ENGINE = _HERE.parent
_SHARED = ("checksum.c", "departures.c", "interface.c")
"""Files of the engine that the library has as well."""
_LIBRARIES = ("-Wl,--no-as-needed", "-lrte_eal", "-lrte_ethdev", "-lrte_mbuf", "-lrte_mempool", "-lrte_ring")
_HUGE_PAGES = Path("/sys/kernel/mm/hugepages")
_SMALL_PAGES_MB = 1024
"""Bound of DPDK's memory where there are no huge pages."""
_MESSAGE_MAX = 1000
_MISSING = "libdpdk is not installed (apt-get install libdpdk-dev pkgconf)"


def _pkg_config(*arguments: str) -> list[str]:
    """Words of pkg-config's answer for libdpdk. Raises DpdkError."""
    command = ["pkg-config", *arguments, "libdpdk"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S, check=True)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise DpdkError(_MISSING) from error
    return done.stdout.split()


def sources() -> list[Path]:
    return [*sorted(_HERE.glob("*.c")), *(_ENGINE / name for name in _SHARED)]


def compiler_flags() -> list[str]:
    """Flags for C that includes DPDK's headers: those of its package, for this processor. Raises DpdkError."""
    return [f"-I{_ENGINE}", *_pkg_config("--cflags"), "-march=native"]


def linker_flags() -> list[str]:
    return [*_pkg_config("--libs-only-L"), *_LIBRARIES]


@functools.cache
def library(cache_dir: Path) -> ctypes.CDLL:
    """Needs no rights, and starts no threads. Raises DpdkError, PipelineError."""
    version = "".join(_pkg_config("--modversion"))
    if not version:
        raise DpdkError(_MISSING)
    path = build_shared(
        sources(),
        cache_dir,
        name=f"dpdk-{version}",
        flags=("-pthread", *HIDDEN, *compiler_flags(), *linker_flags()),
        headers=[*sorted(_HERE.glob("*.h")), *sorted(_ENGINE.glob("*.h")), *sorted(RUNTIME.glob("*.h"))],
    )
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise DpdkError(f"DPDK's libraries cannot be loaded: {error}") from error
    loaded.ss_dpdk_start.argtypes = (
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_char_p),
        ctypes.c_char_p,
        ctypes.c_uint32,
    )
    return loaded


def port_kind(cache_dir: Path) -> int:
    """The address of the kind of port."""
    return ctypes.addressof(ctypes.c_char.in_dll(library(cache_dir), "ss_dpdk_port"))


_outcome: list[str] = []
"""Why the one attempt to start DPDK failed, or an empty text; nothing before it."""


def start(cache_dir: Path, devices: Iterable[DpdkDevice]) -> None:
    """Initializes DPDK at the first call, which names the cards that it may use. Call it after the process has given up
    its rights, because DPDK starts a thread. Raises DpdkError, PipelineError."""
    loaded = library(cache_dir)
    if not _outcome:
        words = [
            ctypes.create_string_buffer(word.encode()) for word in eal_arguments(devices, has_huge_pages())
        ]
        arguments = (ctypes.c_char_p * len(words))(*(ctypes.cast(word, ctypes.c_char_p) for word in words))
        printed = ctypes.create_string_buffer(_MESSAGE_MAX)
        failed = loaded.ss_dpdk_start(len(words), arguments, printed, _MESSAGE_MAX)
        message = " ".join(printed.value.decode(errors="replace").split())
        _outcome.append(f"{message or os.strerror(-failed)}" if failed else "")
    if _outcome[0]:
        raise DpdkError(
            f"DPDK cannot start: {_outcome[0]}: expected free huge pages, or none at all, and cards that are bound to "
            "vfio-pci with an IOMMU, or have a driver that DPDK shares with the kernel"
        )


def has_huge_pages() -> bool:
    return any(int(file.read_text()) > 0 for file in _HUGE_PAGES.glob("*/free_hugepages"))


def eal_arguments(devices: Iterable[DpdkDevice], huge_pages: bool) -> list[str]:
    """One thread of DPDK's own, on all processors of this process; no files, sockets or ports besides."""
    processors = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    memory = ["--in-memory"] if huge_pages else ["--no-huge", "--no-shconf", "-m", str(_SMALL_PAGES_MB)]
    cards = [f"--allow={device.arguments}" for device in devices if not device.is_virtual]
    common = ["--no-telemetry", "--iova-mode=va", "--log-level=*:warning"]
    return ["softswitch", f"--lcores=0@({processors})", *common, *memory, *(cards or ["--no-pci"])]
