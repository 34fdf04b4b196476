# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A P4Runtime client to kill: becomes primary, pushes, then reads, writes and pushes at once, without end. Prints a
line after each round. Arguments: address of the switch, election id."""

from __future__ import annotations

import asyncio
import sys

from kinds import config, counter
from p4runtime_client import Client, modify


async def main(address: str, election_id: int) -> None:
    async with Client(address) as client:
        await client.become_primary(election_id)
        await client.push(config())
        while True:
            await asyncio.gather(
                *(client.read(counter("")) for _ in range(8)),
                *(client.write(modify(counter("ports", 2, 9, 90))) for _ in range(8)),
                client.push(config()),
            )
            sys.stdout.write("a round\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
