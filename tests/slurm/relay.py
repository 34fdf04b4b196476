# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Brings connections of the hosts' network to a controller outside of it, by a Unix socket between two processes:
`relay.py FROM TO`, each `unix:PATH` or `HOST:PORT`."""

from __future__ import annotations

import asyncio
import contextlib
import sys

BYTES = 65_536


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()


async def main(source: str, target: str) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if target.startswith("unix:"):
                onward = await asyncio.open_unix_connection(target.removeprefix("unix:"))
            else:
                host, _, port = target.rpartition(":")
                onward = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, onward[1]), _copy(onward[0], writer))

    if source.startswith("unix:"):
        server = await asyncio.start_unix_server(accept, source.removeprefix("unix:"))
    else:
        host, _, port = source.rpartition(":")
        server = await asyncio.start_server(accept, host, int(port))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
