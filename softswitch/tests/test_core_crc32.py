# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The switch's CRC-32 is zlib's, with and without a processor that multiplies without carry."""

from __future__ import annotations

import ctypes
import random
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

SOFTSWITCH = Path(__file__).parents[1] / "softswitch"


@pytest.fixture(params=["-march=native", "-mno-pclmul"])
def crc32(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[bytes], int]:
    built = tmp_path / "crc32.so"
    includes = (f"-I{SOFTSWITCH / 'runtime'}", f"-I{SOFTSWITCH / 'core'}")
    command = [
        "gcc",
        "-std=gnu11",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fPIC",
        "-shared",
        "-fsanitize=undefined",
    ]
    command += ["-fno-sanitize-recover=all", request.param, *includes, "-o", str(built)]
    subprocess.run([*command, str(SOFTSWITCH / "core" / "crc32.c")], check=True)
    function = ctypes.CDLL(str(built)).ss_crc32
    function.restype, function.argtypes = ctypes.c_uint64, (ctypes.c_char_p, ctypes.c_uint32)
    return lambda data: int(function(data, len(data)))


@pytest.mark.slow
def test_it_is_zlib_s_at_every_length_and_alignment(crc32: Callable[[bytes], int]):
    data = random.Random(1).randbytes(2500)
    for length in range(1200):
        start = length % 17
        assert crc32(data[start : start + length]) == zlib.crc32(data[start : start + length]), length
    for same in (b"\0", b"\xff"):
        assert crc32(same * 1100) == zlib.crc32(same * 1100)
