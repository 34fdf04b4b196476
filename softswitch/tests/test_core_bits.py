# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Fields of headers in wire order: any offset and width, checksums over them where they are, and the CRC-32."""

from __future__ import annotations

import ctypes
import random
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.utils import checksum

RUNTIME = Path(__file__).parents[1] / "softswitch" / "runtime"
SOURCE = """
#include "bits.h"
uint64_t get(const uint8_t *p, unsigned off, unsigned w) { return ss_get(p, off, w); }
void put(uint8_t *p, unsigned off, unsigned w, uint64_t v) { ss_put(p, off, w, v); }
uint64_t words(const uint8_t *p, unsigned n) { return ss_word_checksum(ss_word_sum(p, n)); }
"""
SPARE = 8  # bytes behind a header


@pytest.fixture(scope="module")
def bits(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("bits")
    (folder / "bits.c").write_text(SOURCE)
    flags = (
        "-O1",
        "-Wall",
        "-Werror",
        "-fPIC",
        "-shared",
        "-fsanitize=undefined",
        "-fno-sanitize-recover=all",
    )
    command = ("gcc", "-std=gnu11", *flags, f"-I{RUNTIME}", "-o", folder / "bits.so", folder / "bits.c")
    subprocess.run(command, check=True, timeout=60)
    library = ctypes.CDLL(str(folder / "bits.so"))
    library.get.restype = library.words.restype = ctypes.c_uint64
    return library


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, print_blob=True)
@given(
    header=st.binary(min_size=24, max_size=24),
    first=st.integers(0, 127),
    width=st.integers(1, 64),
    value=st.integers(0, 2**64 - 1),
)
def test_a_field_is_set_and_nothing_beside_it(
    bits: ctypes.CDLL, header: bytes, first: int, width: int, value: int
) -> None:
    buffer = ctypes.create_string_buffer(header + bytes(SPARE))
    whole = int.from_bytes(header)
    shift, ones = 8 * len(header) - first - width, (1 << width) - 1
    where = (ctypes.c_uint(first), ctypes.c_uint(width))
    assert bits.get(buffer, *where) == whole >> shift & ones
    bits.put(buffer, *where, ctypes.c_uint64(value))
    expected = whole & ~(ones << shift) | (value & ones) << shift
    assert buffer.raw[: len(header) + SPARE] == expected.to_bytes(len(header)) + bytes(SPARE)


@settings(max_examples=300, deadline=None, print_blob=True)
@given(words=st.lists(st.binary(min_size=2, max_size=2), max_size=40))
def test_a_checksum_of_words_is_that_of_rfc_1071(bits: ctypes.CDLL, words: list[bytes]) -> None:
    data = b"".join(words)
    assert bits.words(data, ctypes.c_uint(len(data))) == checksum(data)


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
