# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Resources that are acquired in steps and released together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import Self

from netfold.testbed.network.signals import signals_deferred


class ManagedResource(ABC):
    """A context manager: releases what `_bring_up` pushed on `_open`, at the end or after an error."""

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
        """Releases everything; defers signals meanwhile."""
        with signals_deferred():
            self._open.close()
