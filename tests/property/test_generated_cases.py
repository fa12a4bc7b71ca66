"""Generated cases are what they claim to be: valid scripts, on which the oracle keeps its own promises."""

from __future__ import annotations

from collections import Counter

from hypothesis import given

from stairwise.cql.script import Catalogue
from tests.oracle import run
from tests.property.generate import Case, cases


@given(cases())
def test_every_generated_script_is_valid(case: Case) -> None:
    catalogue = Catalogue()
    catalogue.execute(case.script)
    assert set(catalogue.streams) == {"s", "t"}
    assert catalogue.queries


@given(cases(rows=8))
def test_changes_of_a_query_add_up_to_its_answers(case: Case) -> None:
    """The sum of all +1 and −1 lines up to a time is the RSTREAM answer of the last report up to it."""
    script, select = _first_select(case.script)
    whole = run(f"{script}\n{select} EMIT RSTREAM;", case.messages)
    changes = run(f"{script}\n{select} EMIT CHANGES;", case.messages)
    if not whole or "[" not in select or "RANGES" in select or "ROWS" in select:
        return
    end = whole[-1]["time"]
    answer = Counter(str(line["row"]) for line in whole if line["time"] == end)
    total: Counter[str] = Counter()
    for line in changes:
        if line["time"] <= end:
            total[str(line["row"])] += line["diff"]
    assert +total == answer


def _first_select(script: str) -> tuple[str, str]:
    """The declarations, and the first SELECT without its EMIT."""
    lines = script.split("\n")
    declarations = [line for line in lines if line.startswith("CREATE STREAM")]
    select = lines[len(declarations)].removesuffix(";")
    return "\n".join(declarations), select.split(" EMIT ")[0]
