# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Commands about tables. As in BMv2 the smaller priority wins here; P4Runtime shows `TOP - priority`."""

from __future__ import annotations

from dataclasses import replace

from softswitch.admin.verbs import arguments as args
from softswitch.admin.verbs.arguments import CommandError, Target
from softswitch.state.entities import ActionInfo, MatchKind, TableEntry, TableInfo

TOP = (1 << 31) - 1


def _table(target: Target, name: str) -> TableInfo:
    return args.find(target.pipeline.tables, name, "table")


def _action(target: Target, table: TableInfo, name: str) -> ActionInfo:
    own = {action: target.pipeline.actions[action] for action in table.actions}
    return args.find(own, name, f"action of table {table.name}")


def _entry(target: Target, table: TableInfo, handle: str) -> TableEntry:
    entries = target.pipeline.table_handles(table.name)
    wanted = args.number(handle, "entry handle")
    if wanted not in entries:
        raise CommandError(f"table {table.name} has no entry with handle {wanted}")
    return entries[wanted]


def _table_line(table: TableInfo) -> str:
    keys = ",\t".join(f"{key.name}({key.kind.value}, {key.width})" for key in table.keys)
    return f"{table.name:30} [implementation={table.profile}, mk={keys}]"


def _action_line(action: ActionInfo) -> str:
    parameters = ",\t".join(f"{p.name}({p.width})" for p in action.params)
    return f"{action.name:30} [{parameters}]"


def show_tables(target: Target) -> str:
    """List the program's tables: show_tables"""
    return args.listed(_table_line(t) for _, t in sorted(target.pipeline.tables.items()))


def show_actions(target: Target) -> str:
    """List the program's actions: show_actions"""
    return args.listed(_action_line(a) for _, a in sorted(target.pipeline.actions.items()))


def table_show_actions(target: Target, table: str) -> str:
    """List a table's actions: table_show_actions <table name>"""
    info = _table(target, table)
    return args.listed(_action_line(target.pipeline.actions[a]) for a in sorted(info.actions))


def table_info(target: Target, table: str) -> str:
    """Show a table's key and actions: table_info <table name>"""
    return f"{_table_line(_table(target, table))}\n{'*' * 80}\n{table_show_actions(target, table)}"


def table_num_entries(target: Target, table: str) -> str:
    """Count a table's entries: table_num_entries <table name>"""
    return str(len(target.pipeline.table_handles(_table(target, table).name)))


def table_add(target: Target, table: str, action: str, *rest: str) -> str:
    """Add an entry: table_add <table name> <action name> <match fields> => <action parameters> [priority]

    A match field is VALUE, VALUE/LENGTH (lpm), VALUE&&&MASK (ternary) or LOW->HIGH (range). Tables with ternary or
    range fields need a priority; the smallest wins.
    """
    info = _table(target, table)
    chosen = _action(target, info, action)
    fields, parameters = _split(info, rest)
    priority = 0
    if info.needs_priority:
        if not parameters:
            raise CommandError(
                f"table {info.name} has ternary or range fields: the last word must be a priority"
            )
        priority = TOP - args.number(parameters.pop(), "priority", TOP - 1)
    if len(fields) != len(info.keys):
        wanted = " ".join(f"<{key.name}:{key.kind.value}>" for key in info.keys)
        raise CommandError(
            f"table {info.name} has {len(info.keys)} match fields ({wanted}), not {len(fields)}"
        )
    matches = {key.name: args.match(text, key) for key, text in zip(info.keys, fields, strict=True)}
    kept = {key.name: matches[key.name] for key in info.keys if not args.is_wildcard(matches[key.name], key)}
    entry = TableEntry(kept, args.call(chosen, parameters), priority)
    target.pipeline.table_insert(info.name, entry)
    handle = next(h for h, e in target.pipeline.table_handles(info.name).items() if e is entry)
    kind = _match_type(info)
    return f"Adding entry to {kind} match table {info.name}\nEntry has been added with handle {handle}"


def _split(info: TableInfo, rest: tuple[str, ...]) -> tuple[list[str], list[str]]:
    if "=>" in rest:
        at = rest.index("=>")
        return list(rest[:at]), list(rest[at + 1 :])
    if len(rest) > len(info.keys):
        raise CommandError("write => between the match fields and the action's parameters")
    return list(rest), []


def _match_type(info: TableInfo) -> str:
    kinds = {key.kind for key in info.keys}
    for kind in (MatchKind.RANGE, MatchKind.TERNARY, MatchKind.OPTIONAL, MatchKind.LPM):
        if kind in kinds:
            return "ternary" if kind is MatchKind.OPTIONAL else kind.value
    return "exact"


def table_modify(target: Target, table: str, action: str, handle: str, *parameters: str) -> str:
    """Change an entry's action: table_modify <table name> <action name> <entry handle> [action parameters]"""
    info = _table(target, table)
    entry = _entry(target, info, handle)
    given = parameters[1:] if parameters[:1] == ("=>",) else parameters
    changed = replace(entry, action=args.call(_action(target, info, action), given))
    target.pipeline.table_modify(info.name, changed)
    return f"Modifying entry {handle} for {_match_type(info)} match table {info.name}"


def table_delete(target: Target, table: str, handle: str) -> str:
    """Delete an entry: table_delete <table name> <entry handle>"""
    info = _table(target, table)
    entry = _entry(target, info, handle)
    target.pipeline.table_delete(info.name, entry.match, entry.priority)
    return f"Deleting entry {handle} from {info.name}"


def table_clear(target: Target, table: str) -> str:
    """Delete all entries of a table, but not its default entry: table_clear <table name>"""
    info = _table(target, table)
    for entry in target.pipeline.table_handles(info.name).values():
        target.pipeline.table_delete(info.name, entry.match, entry.priority)
    return ""


def table_set_timeout(target: Target, table: str, handle: str, timeout: str) -> str:
    """Set an entry's idle timeout: table_set_timeout <table name> <entry handle> <timeout (ms)>"""
    info = _table(target, table)
    entry = _entry(target, info, handle)
    idle_ns = args.number(timeout, "timeout", 1 << 40) * 1_000_000
    target.pipeline.table_modify(info.name, replace(entry, idle_timeout_ns=idle_ns))
    target.engine.service()
    return f"Setting a {timeout} ms timeout for entry {handle}"


def table_set_default(target: Target, table: str, action: str, *parameters: str) -> str:
    """Set a table's default action: table_set_default <table name> <action name> [action parameters]"""
    info = _table(target, table)
    given = parameters[1:] if parameters[:1] == ("=>",) else parameters
    target.pipeline.table_set_default(info.name, args.call(_action(target, info, action), given))
    return f"Setting default action of {info.name}"


def table_reset_default(target: Target, table: str) -> str:
    """Give a table the program's default action back: table_reset_default <table name>"""
    target.pipeline.table_set_default(_table(target, table).name, None)
    return ""


def table_dump_entry(target: Target, table: str, handle: str) -> str:
    """Show an entry: table_dump_entry <table name> <entry handle>"""
    info = _table(target, table)
    return _dump(target, info, args.number(handle, "entry handle"), _entry(target, info, handle))


def table_dump(target: Target, table: str) -> str:
    """Show a table's entries and its default entry: table_dump <table name>"""
    info = _table(target, table)
    lines = ["==========", "TABLE ENTRIES"]
    for handle, entry in sorted(target.pipeline.table_handles(info.name).items()):
        lines += ["**********", _dump(target, info, handle, entry)]
    default = args.shown_action(target.pipeline.table_default(info.name), target.pipeline)
    return args.listed([*lines, "==========", "Dumping default entry", default, "=========="])


def _dump(target: Target, info: TableInfo, handle: int, entry: TableEntry) -> str:
    width = max([20, *(len(key.name) for key in info.keys)])
    lines = [f"Dumping entry {handle:#x}", "Match key:"]
    lines += [f"* {key.name:{width}}: {args.shown(entry.match.get(key.name), key)}" for key in info.keys]
    if info.needs_priority:
        lines.append(f"Priority: {TOP - entry.priority}")
    lines.append(args.shown_action(entry.action, target.pipeline))
    if entry.idle_timeout_ns:
        idle_ns = target.pipeline.table_idle_ns(info.name, entry.match, entry.priority)
        timeout_ms = entry.idle_timeout_ns // 1_000_000
        lines.append(f"Life: {idle_ns // 1_000_000}ms since hit, timeout is {timeout_ms}ms")
    return args.listed(lines)


VERBS = (
    show_tables,
    show_actions,
    table_show_actions,
    table_info,
    table_num_entries,
    table_add,
    table_modify,
    table_delete,
    table_clear,
    table_set_timeout,
    table_set_default,
    table_reset_default,
    table_dump_entry,
    table_dump,
)
