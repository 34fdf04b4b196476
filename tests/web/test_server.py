# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The page by HTTP: only reads, only for callers that may, and nothing from elsewhere."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http.client
import json
import re
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from netfold.controller.recording.history import History
from netfold.controller.recording.lines import RecordingSource, event_line, fabric_line, state_line
from netfold.controller.web.app import STATIC
from netfold.controller.web.slot_reads import SlotRequest
from netfold.controller.web.source import ControllerSource, LineSource, RecordingReplay, SourceError, fill
from netfold.controller.web.web_server import WebError, WebOptions, WebSecurity, serve
from netfold.protocol.connection import Connection
from netfold.topologies.generators import single_switch
from tests.controller.deployment import asked, deployed
from tests.traffic.tls import make_certificate

TIMEOUT_S = 60.0
LINES = [
    fabric_line(single_switch(2), RecordingSource.CONTROLLER),
    state_line(1.0, {"switches": {"s1": {"ready": True}}}),
    event_line(2.0, "job", "running", job="train"),
]
LOOPBACK = WebOptions()
TOKEN = "0123456789abcdef"


@asynccontextmanager
async def served(source: LineSource, options: WebOptions = LOOPBACK) -> AsyncIterator[str]:
    """The page's address."""
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    running = asyncio.create_task(serve(source, options, ready.set_result, stop))
    try:
        await asyncio.wait([ready, running], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        yield await ready
    finally:
        stop.set()
        await running


def get(
    address: str,
    path: str,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    trusted: ssl.SSLContext | None = None,
) -> tuple[http.client.HTTPResponse, bytes]:
    where = urlsplit(address)
    assert where.hostname
    assert where.port
    connection = (
        http.client.HTTPConnection(where.hostname, where.port, timeout=TIMEOUT_S)
        if trusted is None
        else http.client.HTTPSConnection(where.hostname, where.port, timeout=TIMEOUT_S, context=trusted)
    )
    connection.request(method, path, headers=headers or {})
    answer = connection.getresponse()
    return answer, answer.read()


@contextmanager
def shown(source: LineSource | None = None, options: WebOptions = LOOPBACK) -> Iterator[str]:
    """The address of the page of `source`, or of LINES, which a thread serves: Playwright blocks this one."""
    ready, stop = threading.Event(), threading.Event()
    found: list[str] = []

    async def run() -> None:
        async with served(source or RecordingReplay(LINES), options) as address:
            found.append(address)
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert ready.wait(60)
        yield found[0]
    finally:
        stop.set()
        thread.join()


def messages(stream: bytes) -> Iterator[str]:
    """The lines in a stream of server-sent events."""
    for block in stream.decode().split("\n\n"):
        if block.startswith("id: "):
            yield from re.findall(r"^data: (.*)$", block, re.MULTILINE)


def test_the_page_refers_to_nothing_elsewhere_and_forbids_it():
    with shown() as address:
        answer, body = get(address, "/")
        assert answer.status == 200
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.findall(rb"""(?:src|href)="(?!/static/|/recording|#)""", body)
        for path in re.findall(rb'(?:src|href)="(/[^"]*)"', body):
            found, _ = get(address, path.decode())
            assert found.status == 200, path
            assert found.headers["Content-Security-Policy"] == policy


def test_no_script_in_the_page_itself_runs_but_the_one_that_the_policy_names():
    with shown() as address:
        answer, body = get(address, "/")
        (script,) = re.findall(rb"<script>(.*?)</script>", body, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
        assert f"script-src 'self' 'sha256-{digest}';" in answer.headers["Content-Security-Policy"]


def test_a_recording_is_streamed_whole_and_ends():
    with shown() as address:
        answer, body = get(address, "/events")
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert list(messages(body)) == LINES
        assert body.decode().rstrip().endswith("event: end\nid: 3\ndata: {}")
        _, rest = get(address, "/events", headers={"Last-Event-ID": "2"})
        assert list(messages(rest)) == LINES[2:], "a page that reconnects gets what it has not"


def test_a_recording_can_be_saved():
    with shown() as address:
        answer, body = get(address, "/recording.jsonl")
        assert "attachment" in answer.headers["Content-Disposition"]
        assert body.decode().splitlines() == LINES


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/", "/events", "/recording.jsonl", "/why?job=x", "/slots?job=x"])
def test_nothing_can_be_changed(method: str, path: str):
    with shown() as address:
        refused(address, path, 405, method=method)


def refused(address: str, path: str, status: int, **more: str) -> None:
    assert get(address, path, **more)[0].status == status


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/etc/passwd"]
)
def test_no_other_file_is_served(path: str):
    with shown() as address:
        refused(address, path, 404)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "10.0.0.1:8090"])
def test_a_page_of_another_site_that_points_its_name_here_gets_nothing(host: str):
    with shown() as address:
        assert get(address, "/events", headers={"Host": host})[0].status == 403


class Endless:
    """A source that stays open and has no more lines."""

    is_live = True

    def __init__(self) -> None:
        self.history = History()
        fill(self.history, LINES)

    async def run(self) -> None: ...

    async def explain(self, job: str) -> list[str]:
        raise SourceError("this source has no controller")

    async def read_slots(self, request: SlotRequest) -> dict[str, dict[str, Any]]:
        raise SourceError("this source has no switches")


async def test_streams_that_arrive_together_are_limited_and_closed_ones_make_room(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("netfold.controller.web.app.MAX_STREAMS", 3)

    async def status(address: str) -> tuple[int, asyncio.StreamWriter]:
        where = urlsplit(address)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(f"GET /events HTTP/1.1\r\nHost: localhost:{where.port}\r\n\r\n".encode())
        return int((await reader.readline()).split()[1]), writer

    async with served(Endless()) as address:
        opened = await asyncio.gather(*(status(address) for _ in range(12)))
        assert sorted(code for code, _ in opened) == [200] * 3 + [503] * 9
        for _, writer in opened:
            writer.close()
        async with asyncio.timeout(TIMEOUT_S):
            while (answer := await status(address))[0] != 200:
                answer[1].close()
        answer[1].close()


async def test_beyond_loopback_a_certificate_and_tokens_are_needed():
    with pytest.raises(WebError, match=r"0\.0\.0\.0:0 is reached from other machines"):
        await served(RecordingReplay(LINES), WebOptions("0.0.0.0")).__aenter__()


def test_a_socket_that_listens_already_is_served():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with shown(options=WebOptions(descriptor=listener.detach())) as address:
            assert urlsplit(address).port == port
            assert get(address, "/")[0].status == 200


async def test_a_socket_beyond_loopback_needs_a_certificate_too():
    listener = socket.create_server(("0.0.0.0", 0))
    with pytest.raises(WebError, match="is reached from other machines"):
        await served(RecordingReplay(LINES), WebOptions(descriptor=listener.detach())).__aenter__()


async def test_a_port_that_is_taken_is_refused_with_the_reason():
    refusal = r"cannot listen at 127\.0\.0\.1:\d+: .* listens there; end it, .* by --listen"
    async with served(RecordingReplay(LINES)) as address:
        port = urlsplit(address).port
        assert port
        with pytest.raises(WebError, match=refusal):
            await served(RecordingReplay(LINES), WebOptions(port=port)).__aenter__()


def test_with_tls_a_browser_shows_a_token_as_its_password(tmp_path: Path):
    made = make_certificate(tmp_path)
    security = WebSecurity(made.certificate, made.key, frozenset({TOKEN}))
    trusted = ssl.create_default_context(cafile=str(made.certificate))
    trusted.check_hostname = False

    def status(address: str, authorization: str | None) -> int:
        headers = {} if authorization is None else {"Authorization": authorization}
        return get(address, "/recording.jsonl", headers=headers, trusted=trusted)[0].status

    with shown(options=WebOptions(security=security)) as address:
        assert address.startswith("https://")
        basic = base64.b64encode(f"user:{TOKEN}".encode()).decode()
        assert status(address, f"Basic {basic}") == 200
        assert status(address, f"Bearer {TOKEN}") == 200
        for wrong in (None, "", f"Bearer {TOKEN}x", "Basic", "Basic %%%", "Basic " + basic[:-4], TOKEN):
            assert status(address, wrong) == 401, wrong
        assert "Basic" in get(address, "/", trusted=trusted)[0].headers["WWW-Authenticate"]


def test_vendored_libraries_are_the_ones_that_the_page_names():
    page = (STATIC / "index.html").read_text()
    vendored = {p.name for p in (STATIC / "vendor").iterdir() if p.suffix in (".js", ".css")}
    named = dict(re.findall(r'"/static/vendor/([^"]+)" integrity="sha384-([^"]+)"', page))
    assert named.keys() == vendored
    for name, expected in named.items():
        found = base64.b64encode(hashlib.sha384((STATIC / "vendor" / name).read_bytes()).digest()).decode()
        assert found == expected, name
    for name in vendored:
        library = re.split(r"[-.]", name, maxsplit=1)[0]
        assert (STATIC / "vendor" / f"{library}.LICENSE.txt").is_file(), (
            f"the license of {library} is missing"
        )


async def test_the_page_follows_a_controller_and_says_when_it_is_lost(tmp_path: Path):
    source = ControllerSource(Connection(f"unix:{tmp_path}/s"))
    async with served(source) as address:
        async with deployed(single_switch(2), tmp_path) as deployment, asked(deployment):
            await deployment.settled()
            await until(source, lambda row: row.get("state", {}).get("switches"))
            answer, body = await asyncio.to_thread(get, address, "/recording.jsonl")
            assert json.loads(body.splitlines()[0])["name"] == deployment.fabric.name
            answer, body = await asyncio.to_thread(get, address, "/why?job=nothing")
            assert answer.status == 503
            assert "nothing" in json.loads(body)["error"]
        await until(source, lambda row: row.get("event") == "controller_lost")


async def until(source: ControllerSource, condition: Callable[[dict[str, object]], object]) -> None:
    """Returns at the first line of which the condition holds."""
    number = 0
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            await source.history.wait(number)
            lines, number = source.history.read(number)
            if any(condition(json.loads(line)) for line in lines):
                return
