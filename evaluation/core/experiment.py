# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Every evaluation is an experiment, which yields rows; tables, a JSON document and plots are made of the
rows."""

from __future__ import annotations

import csv
import io
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from rich.table import Table

from netfold.controller.drawing.plot import Plot

Notify = Callable[[str], None]
"""Receives one line about the current step."""


@dataclass(frozen=True)
class Row:
    """One measured case. Fields are its parameters and results; properties are derived from them."""

    def to_dict(self) -> dict[str, Any]:
        """Fields and properties, as JSON takes them: NaN and infinity become None."""
        derived = {
            name: getattr(self, name)
            for base in reversed(type(self).__mro__)
            for name, member in vars(base).items()
            if isinstance(member, property)
        }
        return {name: finite(value) for name, value in {**asdict(self), **derived}.items()}


R = TypeVar("R")


@dataclass(frozen=True)
class Column(Generic[R]):
    """A column of a table. `form` is a format specification; None is shown as "-". Text is aligned left."""

    head: str
    value: Callable[[R], object]
    form: str = ""
    is_text: bool = False

    def cell(self, row: R) -> str:
        value = self.value(row)
        return "-" if value is None else format(value, self.form)


class Experiment(ABC, Generic[R]):
    """An experiment is a frozen dataclass. Its fields are the parameters, which go into the JSON document; the
    annotated ones are options of its command (core/command.py)."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The experiment's name, which its files have, too: NAME.json, NAME.png."""

    @property
    def needs_namespaces(self) -> bool:
        return False

    def has_failed(self, rows: Sequence[R]) -> bool:
        """True if results are wrong: the command then exits with 1."""
        return False

    @property
    def notes(self) -> Sequence[str]:
        """Sentences that are printed below the tables."""
        return ()

    @abstractmethod
    def rows(self, notify: Notify) -> Iterable[R]:
        """Runs the experiment. Each row is yielded when it is complete."""

    @abstractmethod
    def tables(self, rows: Sequence[R]) -> Iterable[Table]: ...

    def document(self, rows: Sequence[R]) -> dict[str, Any]:
        """The results as JSON."""
        return {"rows": [row.to_dict() for row in rows if isinstance(row, Row)]}

    def csv_rows(self, rows: Sequence[R]) -> Sequence[Mapping[str, object]]:
        """Empty: no CSV file."""
        return ()

    def plots(self, rows: Sequence[R]) -> Iterable[Plot]:
        return ()


def table(title: str, columns: Sequence[Column[R]], rows: Iterable[R], caption: str | None = None) -> Table:
    """The one renderer of tables."""
    shown = Table(title=title, caption=caption)
    for column in columns:
        shown.add_column(column.head, justify="left" if column.is_text else "right")
    for row in rows:
        shown.add_row(*(column.cell(row) for column in columns))
    return shown


def to_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Write rows, which have the same keys, as CSV with a header line."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def finite(value: Any) -> Any:
    """`value` with None in place of NaN and infinity, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return value
