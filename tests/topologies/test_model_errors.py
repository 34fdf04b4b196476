# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of a file that does not fit its model: netfold's words, every mistake, each with its line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from netfold.controller.jobs.file import JobFile, Numerics, RanksPerHost, resolve_job
from netfold.controller.switches.devicefile import DeviceSpec, read_devices
from netfold.topologies.generators import single_switch
from netfold.topologies.spec import (
    FatTreeSpec,
    HostSpec,
    LeafSpineSpec,
    LinkSpec,
    LoopbackSpec,
    SingleSwitchSpec,
    SwitchSpec,
    load_fabric,
)
from netfold.topologies.yaml_locations import SpecError

WRONG = (
    "{a: {b: [1]}}",
    "[1, {}]",
    "-0.5",
    "text",
    "yes",
    ".nan",
    "[]",
    "''",
    "-99999999",
    "99999999999999999999",
    "2026-01-01",
)
"""Each key gets each of them; few fit."""

FOREIGN_WORDS = (
    "Input",
    "instance",
    "valid ",
    "should",
    "parse",
    "validation",
    "pydantic",
    "tuple",
    "dictionary",
    "constrained",
    "None",
    "greater",
    "less than or equal",
)


def _foreign(text: str) -> list[str]:
    return [word for word in FOREIGN_WORDS if word in text]


def _check_words(texts: list[str], read: Callable[[str], object], least: int) -> None:
    """At least `least` texts are refused, each in netfold's words."""
    refused: dict[str, str] = {}
    for text in texts:
        try:
            read(text)
        except SpecError as error:
            refused[text] = str(error)
    assert {text: words for text, words in refused.items() if _foreign(words)} == {}
    assert len(refused) > least


def _problems_of_job(text: str) -> list[tuple[int, str]]:
    with pytest.raises(SpecError) as caught:
        resolve_job(text, single_switch(4))
    return [(p.line, p.message) for p in caught.value.problems]


def _job_texts() -> list[str]:
    lines = [f"{key}: {value}" for key in JobFile.model_fields for value in WRONG]
    for group, model in (("numerics", Numerics), ("ranks", RanksPerHost)):
        lines += [f"{group}: {{{key}: {value}}}" for key in model.model_fields for value in WRONG]
    lines += [f"{group}: {{a: {value}}}" for group in ("options", "published") for value in WRONG]
    return [*("name: a\n" * (not line.startswith("name:")) + f"{line}\n" for line in lines), "3: 4\n", "{}\n"]


def test_no_message_of_a_job_file_has_the_words_of_the_library() -> None:
    _check_words(_job_texts(), lambda text: resolve_job(text, single_switch(4)), 150)


def _spec_texts() -> list[str]:
    places = {
        "name: f\nswitches: {s1: {%s}}\nhosts: {h1: {at: s1}}\n": SwitchSpec,
        "name: f\nswitches: {s1: {}}\nhosts: {h1: {%s}}\n": HostSpec,
        "name: f\nswitches: {s1: {}, s2: {}}\nlinks: [{%s}]\n": LinkSpec,
        "name: f\nswitches: {s1: {loopbacks: [{%s}]}}\n": LoopbackSpec,
        "name: f\ngenerate: {single_switch: {%s}}\n": SingleSwitchSpec,
        "name: f\ngenerate: {leaf_spine: {%s}}\n": LeafSpineSpec,
        "name: f\ngenerate: {fat_tree: {%s}}\n": FatTreeSpec,
    }
    return [
        text % f"{key}: {value}"
        for text, model in places.items()
        for key in model.model_fields
        for value in WRONG
    ] + [
        f"name: f\n{key}: {value}\n"
        for key in ("unit", "defaults", "switches", "hosts", "links", "generate")
        for value in WRONG
    ]


def test_no_message_of_a_fabrics_file_has_the_words_of_the_library(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"

    def read(text: str) -> object:
        file.write_text(text)
        return load_fabric(file)

    _check_words(_spec_texts(), read, 300)


def test_no_message_of_a_device_file_has_the_words_of_the_library(tmp_path: Path) -> None:
    file = tmp_path / "d.yaml"
    texts = [f"switches: {{s1: {{{key}: {value}}}}}\n" for key in DeviceSpec.model_fields for value in WRONG]

    def read(text: str) -> object:
        file.write_text(text)
        return read_devices(file, single_switch(2), lanes=32)

    _check_words([*texts, "[1]\n", "7\n", "switches: 3\n", "defaults: 3\n"], read, 30)


def test_a_value_where_a_mapping_belongs_is_answered_with_the_mapping() -> None:
    assert _problems_of_job("name: a\nnumerics: half\n") == [
        (2, "numerics is 'half'; expected a mapping with mode or fraction_bits, as in {mode: half}")
    ]
    assert _problems_of_job("name: a\nranks: 4\n")[0][1].endswith("as in {per_host: 4}")


def test_a_value_of_several_forms_is_answered_once_with_all_of_them() -> None:
    ((line, message),) = _problems_of_job("name: a\nworkers: {h1: 1}\n")
    assert line == 2
    assert message.endswith("; expected a list or a whole number")
    ((_, message),) = _problems_of_job("name: a\nworkers: [h1, 7]\n")
    assert message == "workers.1 is 7; expected a text"
    ((_, message),) = _problems_of_job("name: a\nworkers: 0\n")
    assert message == "workers is 0; expected at least 1"


def test_every_mistake_of_a_job_file_is_reported_with_its_line() -> None:
    """Those of a value's form and those of what it means, in one answer."""
    text = """name: a
numerics: half
workers: [h1, h99]
workerz: 3
scheme: gird
slots: 48
rate: 5
min_rate: 9
parameter_servers: [h98, h3, h3]
quorum_deadline: 0s
"""
    problems = _problems_of_job(text)
    assert [line for line, _ in problems] == [2, 3, 4, 5, 6, 8, 9, 9]
    assert "h99" in problems[1][1]
    assert "h98" in problems[6][1]
    assert "named twice" in problems[7][1]


def test_what_depends_on_a_key_that_is_wrong_is_not_reported() -> None:
    assert [line for line, _ in _problems_of_job("name: a\nworkers: {}\nquorum: 9\n")] == [2]
    assert [
        line
        for line, _ in _problems_of_job(
            "name: a\nparameter_servers: {}\nworkers: [h1]\nrate: x\nmin_rate: 3\n"
        )
    ] == [2, 4]
    assert [line for line, _ in _problems_of_job("name: a\nworkers: [h9]\nquorum: 1\ntransport: roce\n")] == [
        2,
        3,
    ]
