# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Compares pictures of the page with the committed ones, which the guide shows. `make web-pictures` renews them."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

PICTURES = Path(__file__).parents[2] / "docs/how-to/images"
RENEW = "NETFOLD_RENEW_PICTURES"

COLORS = 128
"""Colors of a committed picture: few of them keep its file small."""

BLOCK = 4
"""Pixels are averaged over squares of this width: the edges of letters differ between releases of a browser."""

MAX_DIFFERENCE = 24
"""Greatest difference of a color channel, of 255, between squares that count as equal."""

MAX_DIFFERENT_SHARE = 0.001
"""Fraction of a picture's squares that may differ: a word of a table is more."""


class PictureDiffersError(AssertionError):
    """The page looks different; the message names the new picture and one of what differs."""


def check_picture(name: str, shot: bytes, folder: Path) -> None:
    """Compare with the committed picture, or renew it. Raises PictureDiffersError, and writes to `folder` then."""
    committed = PICTURES / f"{name}.png"
    new = Image.open(io.BytesIO(shot)).convert("RGB")
    different = _different(committed, new)
    if different is not None and not different.any():
        return
    if os.environ.get(RENEW):
        new.quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            committed, optimize=True
        )
        return
    if different is not None and different.mean() <= MAX_DIFFERENT_SHARE:
        return
    looks = folder / f"{name}.png"
    looks.write_bytes(shot)
    if different is None:
        raise PictureDiffersError(
            f"{looks} has another size than {committed}, which `make web-pictures` renews"
        )
    marked = folder / f"{name}-difference.png"
    _mark(new, different).save(marked)
    raise PictureDiffersError(
        f"{different.mean():.2%} of {looks} differ from {committed}, at most {MAX_DIFFERENT_SHARE:.2%} may: "
        f"{marked} shows where; `make web-pictures` renews the committed one"
    )


def _different(committed: Path, new: Image.Image) -> NDArray[np.bool_] | None:
    """By square, whether it differs; None where the sizes do."""
    if not committed.is_file():
        return None
    with Image.open(committed) as image:
        if image.size != new.size:
            return None
        before, after = _averages(image.convert("RGB")), _averages(new)
    found: NDArray[np.bool_] = np.abs(before - after).max(axis=2) > MAX_DIFFERENCE
    return found


def _averages(image: Image.Image) -> NDArray[np.float64]:
    small = image.resize((-(-image.width // BLOCK), -(-image.height // BLOCK)), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float64)


def _mark(new: Image.Image, different: NDArray[np.bool_]) -> Image.Image:
    """The new picture in gray, with what differs in red."""
    mask = Image.fromarray(different.astype(np.uint8) * 160).resize(new.size, Image.Resampling.NEAREST)
    red = Image.new("RGB", new.size, (220, 0, 0))
    return Image.composite(red, new.convert("L").convert("RGB"), mask)
