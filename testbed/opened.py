# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What is brought up in steps and taken down as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import Self

from netfold.topologies.network.signals import held_back


class Opened(ABC):
    """A context manager; what `_bring_up` puts on `_open` is taken down at the end, or when bringing up breaks off."""

    def __init__(self) -> None:
        self._open = ExitStack()

    @abstractmethod
    def _bring_up(self) -> None:
        pass

    def __enter__(self) -> Self:
        try:
            self._bring_up()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take everything down; signals wait until it is done."""
        with held_back():
            self._open.close()
