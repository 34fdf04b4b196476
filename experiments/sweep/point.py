# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A point of a sweep: a pure function of the top of a module, and the frozen dataclass that it takes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any] | list[Any] | str | int | float | bool | None

SHOWN = 300
"""Characters of a point's parameters in a message."""


class SweepError(Exception):
    """A sweep that cannot be made or go on; the message says at which point, and what would be right."""


@dataclass(frozen=True)
class Task:
    """`function(parameters)`. Parameters are a frozen dataclass of JSON's values, enums of strings, tuples and such
    dataclasses; the result is JSON. It may depend on nothing else: no clock, no file, no global."""

    function: Callable[[Any], Json]
    parameters: Any

    def __post_init__(self) -> None:
        kind = type(self.parameters)
        if not dataclasses.is_dataclass(self.parameters) or not kind.__dataclass_params__.frozen:
            raise TypeError(f"{kind.__name__} is no frozen dataclass")
        if "<" in self.function.__qualname__:
            raise TypeError(
                f"{self.function.__qualname__} is not at the top of a module; no other process finds it"
            )

    @property
    def key(self) -> str:
        """Equal for equal tasks: the function's and the parameters' names, and all values, as JSON."""
        kind = type(self.parameters)
        return canonical(
            {
                "function": f"{self.function.__module__}.{self.function.__qualname__}",
                "parameters": f"{kind.__module__}.{kind.__qualname__}",
                "values": dataclasses.asdict(self.parameters),
            }
        )

    def run(self) -> Json:
        """The result as JSON gives it back, so that it is the same from a process, a machine or a file: tuples are
        lists, and floats keep every bit.

        Raises SweepError for whatever the function raises, and for a result that is no JSON.
        """
        try:
            result: Json = json.loads(canonical(self.function(self.parameters)))
        except Exception as error:
            raise SweepError(f"{self}: {type(error).__name__}: {error}") from error
        return result

    def __str__(self) -> str:
        shown = str(self.parameters)
        short = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
        return f"{self.function.__name__}({short})"


def canonical(value: object) -> str:
    """One text for equal values. Raises TypeError for what is no JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
