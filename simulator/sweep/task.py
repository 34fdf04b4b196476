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

MAX_SHOWN = 300
"""A message has at most this many characters of a point's parameters."""


class SweepError(Exception):
    """A sweep failed. The message names the point and the cause."""


@dataclass(frozen=True)
class SweepTask:
    """A task is `function(parameters)`. Parameters are a frozen dataclass of JSON values, string enums, tuples and
    such dataclasses; the result is JSON. It depends on nothing else: no clock, no file, no global."""

    function: Callable[[Any], Json]
    parameters: Any

    def __post_init__(self) -> None:
        kind = type(self.parameters)
        if not dataclasses.is_dataclass(self.parameters) or not kind.__dataclass_params__.frozen:
            raise TypeError(f"{kind.__name__} is not a frozen dataclass")
        if "<" in self.function.__qualname__:
            raise TypeError(
                f"{self.function.__qualname__} is not at the top level of a module: other processes cannot import it"
            )

    @property
    def key(self) -> str:
        """Returns a text that is equal for equal tasks: the function's and the parameters' names, and all values,
        as JSON."""
        kind = type(self.parameters)
        return canonical(
            {
                "function": f"{self.function.__module__}.{self.function.__qualname__}",
                "parameters": f"{kind.__module__}.{kind.__qualname__}",
                "values": dataclasses.asdict(self.parameters),
            }
        )

    def run(self) -> Json:
        """Returns the result as JSON gives it back, so that it is the same from a process, a machine or a file:
        tuples are lists, and floats keep every bit. Raises SweepError for every error of the function, and for a
        result that is not JSON."""
        try:
            result: Json = json.loads(canonical(self.function(self.parameters)))
        except Exception as error:
            raise SweepError(f"{self}: {type(error).__name__}: {error}") from error
        return result

    def __str__(self) -> str:
        shown = str(self.parameters)
        short = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}..."
        return f"{self.function.__name__}({short})"


def canonical(value: object) -> str:
    """Returns equal texts for equal values. Raises TypeError for a value that JSON does not have."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
