# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The page looks as in the committed pictures: on a wide and on a narrow screen, light and dark."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from netfold.controller.web.source import LineSource, RecordingReplay
from tests.web import pictures
from tests.web.chromium import browser, needs_chromium, open_page
from tests.web.example_recording import FULL_AT, example
from tests.web.pictures import PictureDiffersError, check_picture
from tests.web.test_page import go_to, shown
from tests.web.test_sums import EPOCH, SLOTS, Switches

FONT = "DejaVu Sans"
STYLE_SHEET = "**/static/style.css"
SHOTS = 20
"""Tries until two pictures in a row are equal: then nothing is being drawn."""

WIDE, NARROW = 1280, 400
"""Pixels."""


def has_font() -> bool:
    if shutil.which("fc-list") is None:
        return False
    return (
        FONT in subprocess.run(["fc-list", ":", "family"], capture_output=True, text=True, check=True).stdout
    )


in_browser = [
    needs_chromium,
    pytest.mark.long,  # run by make test-web
    pytest.mark.skipif(not has_font(), reason=f"{FONT} is missing; `apt-get install fonts-dejavu` brings it"),
]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


def summing() -> Switches:
    source = Switches()
    source.held = {
        "spine2": (EPOCH, 9 * SLOTS, ["leaf1"]),
        "leaf1": (EPOCH, 9 * SLOTS, ["h1", "h2", "h3", "h4"]),
        "leaf2": (EPOCH, 9 * SLOTS, ["h5", "h6"]),
    }
    return source


def show_fabric(page: Any) -> None:
    go_to(page, FULL_AT + 5)


def show_job(page: Any) -> None:
    go_to(page, 55)
    page.click("#tab-jobs")


def show_sums(page: Any) -> None:
    page.click("#tab-sums")
    page.wait_for_selector('#sum-nodes [data-status="complete"]')


VIEWS: dict[str, tuple[Callable[[], LineSource], Callable[[Any], None], int]] = {
    "fabric": (lambda: RecordingReplay(example()), show_fabric, 760),
    "job": (lambda: RecordingReplay(example()), show_job, 760),
    "sums": (summing, show_sums, 520),
}
"""By name: what is shown, how it is opened, and the height of the window."""


@contextmanager
def styled(context: Any, more: str = "") -> Iterator[None]:
    """The page with one font on each machine, and with `more` rules."""

    def add(route: Any) -> None:
        answer = route.fetch()
        rules = f'* {{ font-family: "{FONT}" !important }} {more}'
        route.fulfill(response=answer, body=answer.text() + rules)

    context.route(STYLE_SHEET, add)
    try:
        yield
    finally:
        context.unroute(STYLE_SHEET, add)


def picture(context: Any, view: str, *, width: int, dark: bool = False, more: str = "") -> bytes:
    make_source, show, height = VIEWS[view]
    with (
        styled(context, more),
        shown(make_source()) as address,
        open_page(context, address, dark=dark) as page,
    ):
        page.set_viewport_size({"width": width, "height": height})
        show(page)
        page.evaluate("document.fonts.ready")
        before = b""
        for _ in range(SHOTS):
            shot: bytes = page.screenshot(full_page=True, animations="disabled", caret="hide")
            if shot == before:
                return shot
            before = shot
    raise AssertionError(f"the view {view} does not come to rest")


class TestInTheBrowser:
    pytestmark = in_browser

    @pytest.mark.parametrize("view", VIEWS)
    @pytest.mark.parametrize(
        ("form", "width", "dark"), [("", WIDE, False), ("-dark", WIDE, True), ("-narrow", NARROW, False)]
    )
    def test_the_page_looks_as_before(
        self, context: Any, tmp_path: Path, view: str, form: str, width: int, dark: bool
    ) -> None:
        check_picture(view + form, picture(context, view, width=width, dark=dark), tmp_path)

    @pytest.mark.parametrize(
        "fault",
        [
            "#panel-fabric .columns { display: none }",
            "aside { display: none }",
            "#legend { display: none }",
            ".trees { display: none }",
            "#time { flex-direction: column }",
        ],
    )
    def test_a_fault_of_the_layout_is_found(
        self, context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
    ) -> None:
        monkeypatch.delenv(pictures.RENEW, raising=False)
        shot = picture(context, "fabric", width=WIDE, more=fault)
        with pytest.raises(PictureDiffersError, match=r"fabric\.png"):
            check_picture("fabric", shot, tmp_path)
        assert (tmp_path / "fabric.png").read_bytes() == shot


@pytest.fixture
def committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the committed picture `box`."""
    folder = tmp_path / "committed"
    folder.mkdir()
    monkeypatch.setattr(pictures, "PICTURES", folder)
    monkeypatch.delenv(pictures.RENEW, raising=False)
    (folder / "box.png").write_bytes(box(100))
    return folder


def box(left: int, *, width: int = 400, gray: int = 40) -> bytes:
    image = Image.new("RGB", (width, 300), "white")
    ImageDraw.Draw(image).rectangle((left, 100, left + 60, 140), fill=(gray, gray, gray))
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


def test_shades_of_a_color_are_equal(committed: Path, tmp_path: Path) -> None:
    check_picture("box", box(100, gray=50), tmp_path)


@pytest.mark.parametrize(
    ("shot", "reason"), [(box(104), "differ from"), (box(100, width=404), "has another size than")]
)
def test_what_moved_is_named_and_shown(committed: Path, tmp_path: Path, shot: bytes, reason: str) -> None:
    with pytest.raises(PictureDiffersError, match=reason) as caught:
        check_picture("box", shot, tmp_path)
    assert str(tmp_path / "box.png") in str(caught.value)
    assert (tmp_path / "box.png").read_bytes() == shot
    marked = tmp_path / "box-difference.png"
    assert marked.is_file() == (reason == "differ from")
    if marked.is_file():
        with Image.open(marked) as image:
            red, green, _ = image.getpixel((100, 120))
            assert red > green + 50
            assert image.getpixel((10, 10)) == (255, 255, 255)


def test_a_picture_is_renewed_if_that_is_asked_for(
    committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(pictures.RENEW, "1")
    check_picture("box", box(200), tmp_path)
    monkeypatch.delenv(pictures.RENEW)
    check_picture("box", box(200), tmp_path)
