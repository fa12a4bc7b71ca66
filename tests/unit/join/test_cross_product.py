"""Which joins pair every row with every row, and how many pairs that makes."""

from __future__ import annotations

import pytest

from services.windows.draft import draft
from stairwise.algebra.query import Select
from stairwise.cql.parser import parse_script
from stairwise.cql.script import Catalogue
from stairwise.errors import LimitError
from stairwise.join.cross_product import CrossProduct, cross_product
from stairwise.plan.explain import explain

DECLARED = (
    "".join(f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, x BIGINT) TIMESTAMP BY ts;" for name in "stu")
    + "CREATE TABLE n (k BIGINT, x BIGINT) KEY (k) NON RETROACTIVE;"
)


def catalogue_of(select: str) -> Catalogue:
    catalogue = Catalogue()
    catalogue.execute(f"{DECLARED}CREATE QUERY q AS {select};")
    return catalogue


def product_of(select: str) -> CrossProduct | None:
    relation = catalogue_of(select).queries["q"].relation
    assert isinstance(relation, Select)
    return cross_product(relation)


@pytest.mark.parametrize(
    "select",
    [
        "SELECT s.x FROM s [RANGE 1h], t [RANGE 1h] WHERE s.k = t.k",
        "SELECT s.x FROM s [ROWS 9], t [ROWS 9], u [ROWS 9] WHERE s.k = u.k AND t.k = u.k",
        "SELECT s.x FROM s [RANGE 1h], u [RANGE 1h], n WHERE s.k = n.k AND u.k = n.k",
        "SELECT s.x FROM s [RANGE 1h], t [RANGE 1h] WHERE CAST(s.ts AS DOUBLE)"
        " BETWEEN CAST(t.ts AS DOUBLE) - 2 AND CAST(t.ts AS DOUBLE) + 3",
    ],
)
def test_inputs_that_are_linked_make_none(select: str) -> None:
    assert product_of(select) is None


def test_what_nothing_links_is_multiplied() -> None:
    found = product_of("SELECT s.x FROM s [ROWS 1000], t [ROWS 500], u [ROWS 20] WHERE s.k = t.k AND s.x < u.x")
    assert found == CrossProduct([["s", "t"], ["u"]], 20_000)
    assert product_of("SELECT s.x FROM s [RANGE 3s], n WHERE s.x > n.x") == CrossProduct([["s"], ["n"]], 30_000_000)


def test_a_query_says_how_many_pairs_it_makes_and_is_refused_beyond_the_limit() -> None:
    select = "SELECT s.x FROM s [ROWS 1000], t [ROWS 500] WHERE s.x < t.x"
    catalogue = catalogue_of(select)
    assert "about 500,000 pairs" in explain(catalogue.queries["q"], {})
    (statement,) = parse_script(f"CREATE QUERY another AS {select};")
    assert "about 500,000 pairs" in draft(catalogue.copy(), statement, most_pairs=500_000).summary
    with pytest.raises(LimitError, match="500,000") as refused:
        draft(catalogue.copy(), statement, most_pairs=499_999)
    assert "STAIRWISE_MOST_PAIRS" in refused.value.hint
