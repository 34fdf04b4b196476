# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold controller backup`, `restore`, `copy`, `verify` and `finalize`: the store of a controller."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.store import SCHEMA
from netfold.controller.operator.controller_client import NO_CONTROLLER, REFUSED, fail
from netfold.controller.service import store_files
from netfold.controller.service.store_files import StoreInUseError, VerifiedStore

backup, restore, copy, verify, finalize = (typer.Typer() for _ in range(5))

HELP = "File or etcd:// address of --state of `netfold controller run`."
State = Annotated[str, typer.Argument(metavar="STATE", help=HELP)]


@backup.command()
def _backup(
    state: State, copy: Annotated[Path, typer.Argument(metavar="COPY", help="New file for the copy.")]
) -> None:
    """Copy the state of a controller, which may run, and verify the copy.

    Exit codes: 0 copied, 3 the copy has faults, 4 a file cannot be used.
    """
    try:
        _show(copy, store_files.back_up(state, copy))
    except StoreError as error:
        fail(NO_CONTROLLER, str(error))


@restore.command()
def _restore(
    copy: Annotated[Path, typer.Argument(metavar="COPY", help="File that `netfold controller backup` made.")],
    state: State,
) -> None:
    """Put a copy in the place of the state of a controller that is stopped. Jobs of the copy start again in a new job
    epoch.

    Exit codes: 0 restored, 3 a controller leads with the state, 4 a file cannot be used or has faults.
    """
    try:
        _show(state, store_files.restore(copy, state))
    except StoreInUseError as error:
        fail(REFUSED, str(error))
    except StoreError as error:
        fail(NO_CONTROLLER, str(error))


@copy.command()
def _copy_store(
    source: Annotated[str, typer.Argument(metavar="FROM", help=HELP)],
    target: Annotated[str, typer.Argument(metavar="TO", help="The same, where no store is.")],
) -> None:
    """Copy the state of a controller that is stopped to a place without one, such as from a file to etcd.

    Exit codes: 0 copied, 3 a controller leads with the file FROM, 4 a place cannot be used or FROM has faults.
    """
    try:
        _show(target, store_files.copy(source, target))
    except StoreInUseError as error:
        fail(REFUSED, str(error))
    except StoreError as error:
        fail(NO_CONTROLLER, str(error))


@verify.command()
def _verify(state: State) -> None:
    """Check a state or a copy of one: the file, its schema, each record, and whether placements fit the fabric. The
    controller may run.

    Exit codes: 0 no fault, 3 faults, 4 the file is no state that this version can use.
    """
    try:
        _show(state, store_files.verify(state))
    except StoreError as error:
        fail(NO_CONTROLLER, str(error))


@finalize.command()
def _finalize(state: State) -> None:
    """End an upgrade: the version before cannot use the state any more, and this version may use all of it. The
    controller may run.

    Exit codes: 0 final, 4 the file is no state that this version can use.
    """
    try:
        store_files.finalize(state)
    except StoreError as error:
        fail(NO_CONTROLLER, str(error))
    typer.echo(f"{state} has schema {SCHEMA}; the version before refuses it")


def _show(path: Path | str, verdict: VerifiedStore) -> None:
    before = "" if verdict.schema == SCHEMA else ", which the version before can use, too"
    typer.echo(
        f"{path}: fabric {verdict.fabric}, {verdict.jobs} jobs, {verdict.live_jobs} of them live; schema "
        f"{verdict.schema}{before}"
    )
    for fault in verdict.faults:
        typer.echo(f"fault: {fault}")
    if verdict.faults:
        raise typer.Exit(REFUSED)
