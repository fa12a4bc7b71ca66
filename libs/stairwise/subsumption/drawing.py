"""A query's group as a picture, for EXPLAIN: nested bars, as long as the range, the newest slide heavy.

group 1: 4 windows of 6 queries
                             ─────━━━━━━┫  RANGE 10 SECONDS  SLIDE 5 SECONDS   seed, 3 queries
                             ╌╌╌╌╌╌╌╌╌╌╌┤  RANGE 10 SECONDS  SLIDE 10 SECONDS  piggybacked, 1 report in 2
                  ────────────────━━━━━━┫  RANGE 20 SECONDS  SLIDE 5 SECONDS   enclosing                   ◀ fast
─────────────────────────────━━━━━━━━━━━┫  RANGE 36 SECONDS  SLIDE 10 SECONDS  enclosing
                                        τ
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stairwise.algebra.spelling import spell_duration
from stairwise.subsumption.group import Group, Role
from stairwise.windows.spec import TimeWindow

_CELLS = 40
"""The length of the longest bar."""
_AROUND = 5
"""A long group is cut down to its ends and so many windows on either side of a marked one."""


_LEVEL = "\x1f"
"""Parts a query's name from a level of it: no name has it."""


def level_of(query: str, level: int) -> str:
    """The member of a group that is one level of a query."""
    return f"{query}{_LEVEL}level {level}"


def draw(group: Group, *members: str) -> str:
    """The group with marks at the windows of these members: a query, or levels of one (``level_of``)."""
    windows = list(group.windows())
    own = {windows.index(window): member for window in windows for member in members if member in group.members[window]}
    shown = _shown(group, windows, own)
    columns = [_columns(group, windows[i]) for i in shown]
    widths = [max(map(len, column)) for column in zip(*columns, strict=True)]
    lines = [_title(group)]
    passed = 0
    for i, cells in zip(shown, columns, strict=True):
        if i > passed:
            lines.append(_more(i - passed))
        bar = _bar(group, windows[i]).rjust(_CELLS + 1)
        text = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{bar}  {text}{f'  ◀ {_label(own[i])}' if i in own else ''}".rstrip())
        passed = i + 1
    if passed < len(windows):
        lines.append(_more(len(windows) - passed))
    front = f"τ − {spell_duration(group.seed.lag)}" if group.seed.lag else "τ"
    return "\n".join([*lines, f"{front:>{_CELLS + 1}}"])


def _title(group: Group) -> str:
    queries = {member.partition(_LEVEL)[0] for members in group.members.values() for member in members}
    return f"group {group.number}: {_count(len(group.members), 'window')} of {_count(len(queries), 'query', 'queries')}"


def _label(member: str) -> str:
    return member.replace(_LEVEL, " ")


def _more(windows: int) -> str:
    return f"{'⋮':>{_CELLS}}   {_count(windows, 'window')} more"


def _shown(group: Group, windows: list[TimeWindow], own: Iterable[int]) -> list[int]:
    """The seed, the marked windows with their carriers and those around them, and the widest carrier."""
    shown = {0, windows.index(group.chain[-1])}
    for place in own:
        shown.add(windows.index(group.carrier(windows[place])))
        shown.update(range(max(0, place - _AROUND), min(len(windows), place + _AROUND + 1)))
    return sorted(shown)


def _columns(group: Group, window: TimeWindow) -> tuple[str, str, str]:
    offset = f" OFFSET {spell_duration(window.offset)}" if window.offset else ""
    return (
        f"RANGE {spell_duration(window.range)}",
        f"SLIDE {spell_duration(window.slide)}{offset}",
        ", ".join(_remarks(group, window)),
    )


def _remarks(group: Group, window: TimeWindow) -> Iterator[str]:
    role = group.role(window)
    yield role.value
    if role is Role.PIGGYBACKED:
        yield f"1 report in {group.quotient(window)}"
    if len(group.members[window]) > 1:
        yield _count(len(group.members[window]), "query", "queries")


def _bar(group: Group, window: TimeWindow) -> str:
    widest = group.chain[-1].range
    length = max(1, round(_CELLS * window.range / widest))
    fresh = min(length, max(1, round(_CELLS * window.slide / widest)))
    if group.role(window) is Role.PIGGYBACKED:
        return "╌" * length + "┤"
    return "─" * (length - fresh) + "━" * fresh + "┫"


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
