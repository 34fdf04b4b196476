# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The page and what it asks for. All of it only reads.

/                   the page
/static/...         its scripts and styles
/events             the recording's lines as server-sent events; an id is the number of the line that follows
/recording.jsonl    the lines that are kept, as a file for `netfold replay`
/why?job=NAME       `netfold job explain` of a job
/slots?job=NAME&tree=T&slot=S&switch=A&switch=B
                    what the switches hold in a slot, as `netfold job slot` reads it
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from netfold.controller.web.access import AccessControl
from netfold.controller.web.slot_reads import SlotRequest
from netfold.controller.web.source import LineSource, SourceError

STATIC = Path(__file__).parent / "static"

KEEPALIVE_S = 15.0
"""Time between two comments in a silent stream. Only a write shows that a reader is gone."""

MAX_STREAMS = 64
LINES_AN_EVENT = 200


def make_app(source: LineSource, *, tokens: frozenset[str] | None, loopback_only: bool) -> Starlette:
    """The application; `source` runs while it does. `tokens` and `loopback_only`: as in AccessControl."""
    page = _Page(source, shows_values=tokens is not None)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        running = asyncio.create_task(source.run())
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    return Starlette(
        routes=[
            Route("/", page.index),
            Route("/events", page.events),
            Route("/recording.jsonl", page.recording),
            Route("/why", page.why),
            Route("/slots", page.slots),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(AccessControl, tokens=tokens, loopback_only=loopback_only)],
        lifespan=lifespan,
    )


@dataclass
class _OpenStreams:
    count: int = 0


class _LimitedStream(StreamingResponse):
    """Refused while MAX_STREAMS others are open. They are counted before anything is sent: requests that arrive
    together are not all let in."""

    def __init__(self, content: AsyncIterator[str], others: _OpenStreams, **more: Any) -> None:
        super().__init__(content, **more)
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._others.count >= MAX_STREAMS:
            refusal = PlainTextResponse(f"{MAX_STREAMS} pages are open already", 503)
            await refusal(scope, receive, send)
            return
        self._others.count += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._others.count -= 1


class _Page:
    def __init__(self, source: LineSource, *, shows_values: bool) -> None:
        self._source = source
        self._shows_values = shows_values
        self._open = _OpenStreams()

    async def index(self, _: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def events(self, request: Request) -> Response:
        last = request.headers.get("last-event-id", "")
        start = int(last) if last.isdecimal() and len(last) < 16 else 0
        return _LimitedStream(self._stream(start), self._open, media_type="text/event-stream")

    async def recording(self, _: Request) -> Response:
        headers = {"Content-Disposition": 'attachment; filename="netfold-recording.jsonl"'}
        return _LimitedStream(self._kept(), self._open, media_type="application/jsonl", headers=headers)

    async def why(self, request: Request) -> Response:
        try:
            return JSONResponse({"steps": await self._source.explain(request.query_params.get("job", ""))})
        except SourceError as error:
            return JSONResponse({"error": str(error)}, 503)

    async def slots(self, request: Request) -> Response:
        query = request.query_params
        try:
            wanted = SlotRequest.of(query, query.getlist("switch"), shows_values=self._shows_values)
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 400)
        try:
            return JSONResponse({"switches": await self._source.read_slots(wanted)})
        except SourceError as error:
            return JSONResponse({"error": str(error)}, 503)

    async def _stream(self, number: int) -> AsyncIterator[str]:
        """Send the lines from `number` on. The event `hello` tells whether more may follow, `end` that nothing does."""
        history = self._source.history
        yield f"event: hello\ndata: {json.dumps({'live': self._source.is_live})}\n\n"
        while True:
            lines, number = history.read(number, LINES_AN_EVENT)
            if lines:
                yield f"id: {number}\n" + "".join(f"data: {line}\n" for line in lines) + "\n"
                await _yield_to_the_loop()
            elif history.closed:
                yield f"event: end\nid: {number}\ndata: {{}}\n\n"
                return
            else:
                try:
                    async with asyncio.timeout(KEEPALIVE_S):
                        await history.wait(number)
                except TimeoutError:
                    yield ": still here\n\n"

    async def _kept(self) -> AsyncIterator[str]:
        """Yield the lines that are kept now; later ones are in another file."""
        history = self._source.history
        number, end = 0, history.end
        while number < end:
            lines, number = history.read(number, LINES_AN_EVENT)
            if not lines:
                return
            yield "".join(f"{line}\n" for line in lines)
            await _yield_to_the_loop()


async def _yield_to_the_loop() -> None:
    """The event loop reports the end of a connection. Until then each write to it is a line of asyncio's log."""
    await asyncio.sleep(0)
