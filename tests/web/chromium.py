# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium, headless, and pages in it that must not have errors."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SIZE = {"width": 1280, "height": 800}
TIMEOUT_MS = 60_000.0

OPTIONS = [
    "--no-sandbox",  # tests run as root
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
]

NETWORK_CHANGED = "net::ERR_NETWORK_CHANGED"
"""The error of requests while a test beside this one makes or removes links: Chromium gives them up, and the page
reloads."""

STATE = """() => ({
  shown: document.visibilityState, loaded: document.readyState, status: document.querySelector('#status')?.textContent,
  requests: performance.getEntriesByType('resource').map(r => [r.name, Math.round(r.responseEnd)]),
})"""
"""Reads the state of a page that draws nothing."""

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not on PATH; `apt-get install chromium` brings it"
)


@contextmanager
def browser(profile: Path) -> Iterator[Any]:
    """A browser with a profile of its own."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            profile,
            executable_path=CHROMIUM,
            args=OPTIONS,
            headless=True,
            viewport=SIZE,
            timezone_id="UTC",
            locale="en",
        )
        context.set_default_timeout(TIMEOUT_MS)
        playwright.expect.set_options(timeout=TIMEOUT_MS)
        try:
            yield context
        finally:
            context.close()


def expect(locator: Any) -> Any:
    """Playwright's assertions, which wait until the page shows what is expected."""
    return pytest.importorskip("playwright.sync_api").expect(locator)


def go_to_end(page: Any) -> None:
    """From the moment at which a recording opens."""
    page.wait_for_selector('#live[aria-pressed="false"]')
    page.click("#live")
    page.wait_for_selector('#live[aria-pressed="true"]')


@contextmanager
def open_page(context: Any, address: str, *, dark: bool = False) -> Iterator[Any]:
    """The page once it has drawn a state. Fails for errors in its console, and for requests to anywhere else."""
    page = context.new_page()
    errors: list[str] = []
    lost_elements = 0

    def on_failure(request: Any) -> None:
        nonlocal lost_elements
        lost_elements += request.failure == NETWORK_CHANGED and request.resource_type in (
            "script",
            "stylesheet",
        )

    def on_console(message: Any) -> None:
        if message.type == "error" and NETWORK_CHANGED not in message.text:
            errors.append(message.text)

    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", on_console)
    page.on("requestfailed", on_failure)
    page.on(
        "request",
        lambda request: request.url.startswith(address.partition("#")[0]) or errors.append(request.url),
    )
    page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
    _go(page, address)
    while lost_elements:  # of the page; a stream of events connects again without a reload
        lost_elements = 0
        page.wait_for_event("load")
    try:
        page.wait_for_selector("body[data-drawn]")
    except pytest.importorskip("playwright.sync_api").TimeoutError as late:
        raise AssertionError(f"nothing is drawn: {page.evaluate(STATE)}, errors {errors}") from late
    try:
        yield page
        assert errors == []
    finally:
        page.close()


def _go(page: Any, address: str) -> None:
    """Chromium gives up the page itself, too, when links change: it is asked for again."""
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while True:
        try:
            page.goto(address)
        except pytest.importorskip("playwright.sync_api").Error as error:
            if NETWORK_CHANGED not in str(error) or time.monotonic() > deadline:
                raise
        else:
            return
