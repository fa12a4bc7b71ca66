"""What a person sees: lines in a pipe, a table on a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from stairwise.system.display import LineDisplay, LiveDisplay, display_on
from stairwise.system.state import PartState, SystemState
from stairwise.system.system_part import Check
from tests.unit.system.small_parts import empty_state

WAITING = PartState("broker", Check("kafka", "127.0.0.1:9092"))
STARTING = replace(WAITING, phase="starting", started=100.0, since=100.0)
HEALTHY = replace(STARTING, phase="healthy", since=104.2)
DEAD = replace(HEALTHY, phase="restarting", reason="was ended by SIGKILL after 9.0 s")


def states(*parts: PartState) -> list[SystemState]:
    return [empty_state(parts=(part,)) for part in parts]


def test_in_a_pipe_every_change_is_one_line() -> None:
    stream = io.StringIO()
    display = display_on(stream)
    assert isinstance(display, LineDisplay)
    for state in states(WAITING, STARTING, STARTING, HEALTHY, HEALTHY, DEAD):
        display.update(state)
    assert stream.getvalue().splitlines() == [
        "broker     starting",
        "broker     healthy    127.0.0.1:9092  after 4.2 s",
        "broker     restarting was ended by SIGKILL after 9.0 s",
    ]


def test_in_a_pipe_a_part_that_never_started_is_not_told_to_have_stopped() -> None:
    stream = io.StringIO()
    display = display_on(stream)
    for state in states(WAITING, replace(WAITING, phase="stopped")):
        display.update(state)
    assert stream.getvalue() == ""


def test_on_a_terminal_the_table_stays_with_its_last_state() -> None:
    stream = io.StringIO()
    display = LiveDisplay(Console(file=stream, force_terminal=True, width=100))
    for state in states(WAITING, STARTING, HEALTHY):
        display.update(state)
    display.say("a remark [not markup]")
    display.update(replace(*states(HEALTHY), phase="running"))
    shown = stream.getvalue()
    assert "a remark [not markup]" in shown
    assert "127.0.0.1:9092" in shown[shown.index("a remark") :]
    assert "healthy" in shown
