# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The boot image of a machine: a kernel and an initial RAM file system.

Debian's kernel with rdma_rxe, busybox, the verbs programs with their libraries (ldd), and `init`, which loads the
modules, creates the RDMA device and runs commands received on a serial port.
"""

from __future__ import annotations

import gzip
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from netfold.testbed.errors import RunError

MODULES = (
    "virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_console",
    "failover", "net_failover", "virtio_net", "crc32_generic", "crc32-pclmul", "ib_core", "ib_uverbs", "configfs",
    "ib_cm", "iw_cm", "rdma_cm", "rdma_ucm", "udp_tunnel", "ip6_udp_tunnel", "rdma_rxe",
    "sch_ingress", "cls_u32", "act_gact",
)  # fmt: skip
"""Kernel modules in load order: the machine has no modprobe."""

PROGRAMS = (
    "sbin/tc", "usr/bin/rdma", "usr/bin/ibv_devinfo", "usr/bin/ibv_rc_pingpong",
    "usr/bin/ib_send_bw", "usr/bin/ib_write_bw",
)  # fmt: skip
PROVIDER = "usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so"
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_HIDDEN = ("libgcc_s.so.1",)
"""Libraries loaded at run time: pthread_exit needs this one."""

_FILE, _FOLDER = 0o100755, 0o040755


@dataclass(frozen=True)
class Image:
    """Files for QEMU's -kernel and -initrd."""

    kernel: Path
    archive: Path


def make_image(root: Path, programs: Iterable[Path], archive: Path) -> Image:
    """Write the archive from the packages unpacked at `root`, with `programs` in /bin. Raises RunError."""
    kernels = sorted((root / "boot").glob("vmlinuz-*"))
    if not kernels:
        raise RunError(f"there is no kernel in {root}/boot; remove {root.parent} and try again")
    chosen = [root / p for p in PROGRAMS] + list(programs)
    files = {f"bin/{p.name}": p for p in chosen}
    files["bin/busybox"] = root / "bin/busybox"
    files |= {f"modules/{i:02}-{m}.ko": _module(root, m) for i, m in enumerate(MODULES)}
    files[PROVIDER] = root / PROVIDER
    files["etc/libibverbs.d/rxe.driver"] = root / "etc/libibverbs.d/rxe.driver"
    files |= _libraries(root, [*chosen, root / PROVIDER])
    files["init"] = Path(__file__).with_name("init.sh")
    with gzip.GzipFile(archive, "wb", compresslevel=1, mtime=0) as out:
        out.write(_newc(files))
    return Image(kernels[-1], archive)


def _module(root: Path, name: str) -> Path:
    found = next((root / "lib/modules").rglob(f"{name}.ko"), None)
    if found is None:
        raise RunError(f"the kernel's package has no module {name}.ko")
    return found


def _libraries(root: Path, programs: list[Path]) -> dict[str, Path]:
    """Return the place of each library in the machine, and its file here; unpacked ones before this machine's."""
    own = root / _LIBRARIES
    done = subprocess.run(
        ["ldd", *map(str, programs)],
        env={"LD_LIBRARY_PATH": str(own), "PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    missing = re.findall(r"(\S+) => not found", done.stdout)
    if done.returncode != 0 or missing:
        raise RunError(
            f"libraries of the verbs programs are missing here: {', '.join(missing) or done.stderr}"
        )
    found = {Path(p).name: Path(p) for p in re.findall(r"=> (/\S+)", done.stdout)}
    loader = re.findall(r"^\s(/lib64/\S+)", done.stdout, re.MULTILINE)
    libc = found["libc.so.6"].parent
    found |= {name: libc / name for name in _HIDDEN if (libc / name).exists()}
    return {f"{_LIBRARIES}/{n}": p for n, p in found.items()} | {p.lstrip("/"): Path(p) for p in loader}


def _newc(files: dict[str, Path]) -> bytes:
    """A cpio archive in the kernel's format, with all folders above the files."""
    folders = {str(above) for name in files for above in Path(name).parents if str(above) != "."}
    folders |= {"proc", "sys", "dev", "tmp"}
    parts = [_entry(name, _FOLDER, b"") for name in sorted(folders)]
    parts += [_entry(name, _FILE, path.read_bytes()) for name, path in sorted(files.items())]
    parts.append(_entry("TRAILER!!!", 0, b""))
    return b"".join(parts)


def _entry(name: str, mode: int, content: bytes) -> bytes:
    numbers = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    header = b"070701" + b"".join(b"%08x" % n for n in numbers) + name.encode() + b"\0"
    return _padded(header) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
