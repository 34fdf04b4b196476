# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Holds the contents of one switch as read over P4Runtime, and makes the writes that change them."""

from __future__ import annotations

from netfold.controller.jobs.revisions import Revision
from netfold.controller.switches.connection import SwitchConnection
from netfold.controller.switches.entries import Contents, Key, UnknownEntityError
from netfold.controller.switches.install import WriteBatch, apply, count_differences
from netfold.controller.switches.revision_entry import revisions_in


class ForeignStateError(Exception):
    """The switch has contents that no controller of this store wrote: its pipeline has to be pushed again."""


class InstalledState:
    """State of a switch: `contents` are its contents as far as known. Methods raise fy.P4ClientError if the switch
    refuses."""

    def __init__(self, connection: SwitchConnection, marker: Key, management_tree: int) -> None:
        self.contents: Contents = {}
        self._connection = connection
        self._marker = marker
        self._management_tree = management_tree

    @property
    def has_store_marker(self) -> bool:
        """Whether a controller of this store wrote the contents."""
        return self._marker in self.contents

    @property
    def revisions(self) -> list[Revision]:
        """Revisions of the switch's slots that its entries name."""
        return revisions_in(self.contents, self._management_tree)

    def count_differences(self, desired: Contents) -> int:
        """The number of entries that differ."""
        return count_differences(self.contents, desired)

    async def read(self) -> int:
        """Read the contents, and return the number of entries that differ from the known ones. Raises
        ForeignStateError."""
        try:
            known, self.contents = self.contents, await self._connection.read()
        except UnknownEntityError as error:
            raise ForeignStateError(str(error)) from error
        return self.count_differences(known)

    async def write(self, batch: WriteBatch) -> None:
        await self._connection.write(batch)
        apply(self.contents, batch)
