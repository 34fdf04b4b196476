# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The codec of the scheme quarter, built anew: with and without vectors it has the same bits, one wrong operation is
found by the comparison with numpy, and it costs little more than a copy."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from netfold.traffic.engine.recipe import FLAGS, FOLDER
from tests.traffic import quarter_oracle as oracle

SOURCE = (FOLDER / "numerics" / "rotate.c").read_text()
FINGERPRINT, WIDTH, WORKERS = 77, 1024, 5
RANGES = (3, 120, *range(160, 186), 253)


class _Rotation(ctypes.Structure):
    _fields_ = (
        ("fingerprint", ctypes.c_uint64),
        ("row", ctypes.c_int64),
        ("rank", ctypes.c_int64),
        ("workers", ctypes.c_int64),
    )


def built(folder: Path, source: str, options: Sequence[str] = ()) -> ctypes.CDLL:
    code, target = folder / "rotate.c", folder / f"rotate{len(list(folder.iterdir()))}.so"
    code.write_text(source)
    include = ("-I", str(FOLDER / "numerics"))
    command = ["gcc", *FLAGS, *options, *include, "-shared", "-o", str(target), str(code), "-lm"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    found = ctypes.CDLL(str(target))
    found.nf_rotate_unpack.restype = found.nf_range_of.restype = ctypes.c_uint8
    return found


def at(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def rows() -> list[np.ndarray]:
    draw = np.random.default_rng(9)
    kinds = [
        draw.standard_normal(WIDTH),
        np.full(WIDTH, 0.3),
        np.zeros(WIDTH),
        draw.standard_normal(WIDTH) * 1e-42,
    ]
    spike = np.zeros(WIDTH)
    spike[5] = 1e30
    return [row.astype(np.float32) for row in (*kinds, spike, spike * 6e-46, draw.standard_normal(WIDTH) * 4)]


def run(code: ctypes.CDLL) -> list[tuple[object, ...]]:
    """Returns the code's results for each row, and for the lanes of it."""
    found: list[tuple[object, ...]] = []
    for number, row in enumerate(rows()):
        exponent = int((row.view(np.uint32) & np.uint32(0x7FFFFFFF)).max() >> 23)
        for range_byte in RANGES:
            lanes, values = np.zeros(WIDTH // 4, np.uint32), np.zeros(WIDTH, np.float32)
            rotation = _Rotation(FINGERPRINT, number, 3, WORKERS)
            width, byte = ctypes.c_int64(WIDTH), ctypes.c_uint8(range_byte)
            fits = code.nf_rotate_pack(
                at(lanes), at(row), width, ctypes.c_uint8(exponent), byte, ctypes.byref(rotation)
            )
            if not fits:
                found.append((number, range_byte, None))
                continue
            divisor = ctypes.c_double(WORKERS)
            observed = code.nf_rotate_unpack(
                at(values), at(lanes), width, byte, divisor, ctypes.byref(rotation)
            )
            found.append((number, range_byte, lanes.byteswap().tobytes(), values.tobytes(), observed))
    return found


def expected() -> list[tuple[object, ...]]:
    """The same by numpy."""
    found: list[tuple[object, ...]] = []
    for number, row in enumerate(rows()):
        for range_byte in RANGES:
            codes = oracle.encode(row, range_byte, FINGERPRINT, number, 3, WORKERS)
            if codes is None:
                found.append((number, range_byte, None))
                continue
            decoded = oracle.decode(codes, range_byte, FINGERPRINT, number, WORKERS)
            lanes = oracle.pack(codes).astype(np.uint32).tobytes()
            found.append((number, range_byte, lanes, decoded.values.tobytes(), decoded.observed))
    return found


@pytest.mark.parametrize(
    "options", [(), ("-DNF_PLAIN",), ("-DNF_PLAIN", "-O0"), ("-ffast-math", "-fno-fast-math")]
)
def test_every_build_has_the_bits_of_numpy(tmp_path: Path, options: Sequence[str]):
    assert run(built(tmp_path, SOURCE, options)) == expected()


MUTANTS = {
    "no sign": ("(value ^ sign) - sign", "value"),
    "the same signs in all rows": ("nf_mix(r->fingerprint, (uint64_t)r->row)", "nf_mix(r->fingerprint, 0)"),
    "no stagger": ("(r->rank << DITHER_BITS) / r->workers", "0 * r->rank"),
    "no dither": ("(int32_t)((words[i] + stagger) & DITHER_MASK)", "(int32_t)(stagger & DITHER_MASK)"),
    "rounded to nearest": ("(words[i] + stagger) & DITHER_MASK", "1u << (DITHER_BITS - 1)"),
    "a difference the wrong way": ("sum1 - sum2;", "sum2 - sum1;"),
    "a pair at the wrong distance": ("x = __builtin_shuffle(x, by4)", "x = __builtin_shuffle(x, by2)"),
    "a code beyond eight bits": ("CODE_MAX = 127", "CODE_MAX = 160"),
    "no borrow given back": ("rest = (int32_t)((uint32_t)rest - (uint32_t)d) >> 8;", "rest >>= 8;"),
    "a field in the wrong place": ("(a << 24) + (b << 16)", "(b << 24) + (a << 16)"),
    "another range": ("(mantissa < M_SQRT1_2)", "(mantissa > M_SQRT1_2)"),
    "no floor of ranges": ("byte < NF_BELOW_RANGES ? NF_BELOW_RANGES :", ""),
    "a quarter of an octave": ("place & 3]", "place & 1]"),
}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_operation_is_found(tmp_path: Path, mutant: str):
    old, new = MUTANTS[mutant]
    assert SOURCE.count(old) >= 1
    assert run(built(tmp_path, SOURCE.replace(old, new))) != expected()


def test_the_codec_costs_at_most_thirty_times_a_copy(tmp_path: Path):
    """In processor time, the best of several runs, so that other programs do not count; half's costs one copy, and 3 ns
    an element are about 40. docs/results/gradients.md has nanoseconds."""
    source = SOURCE + (Path(__file__).with_name("quarter_cost.c")).read_text()
    code = built(tmp_path, source)
    code.cost_in_copies.restype = ctypes.c_double
    assert code.cost_in_copies() < 30
