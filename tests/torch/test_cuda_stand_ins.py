# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Stand-ins of CUDA's libraries say that there is no device, in the type that their callers expect."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from tests.torch import cuda_stand_ins


@pytest.mark.skipif(shutil.which("gcc") is None, reason="SKIPPED: gcc is not installed")
def test_functions_return_an_error_and_texts_its_name(tmp_path: Path):
    """PyTorch 2.15 prints the error in each barrier. A number in place of the text ends the process."""
    path = tmp_path / "libcudart.so.13"
    cuda_stand_ins._compile(path, "libcudart.so.13", ["cudaGetDeviceCount", "cudaGetErrorString"])
    library = ctypes.CDLL(str(path))
    library.cudaGetErrorString.restype = ctypes.c_char_p
    assert library.cudaGetDeviceCount() == 100
    assert library.cudaGetErrorString(100) == b"cudaErrorNoDevice"
