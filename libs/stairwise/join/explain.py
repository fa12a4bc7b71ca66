"""What EXPLAIN says of how a join is evaluated: by which keys, in which order, and when.

join: each row looks once for its partners, by s.k = t.k = u.k; with the other rows of its key where they are many
  order: s, u, t by their windows; while it runs, by the rows and keys that these hold
  when: at the report that shows what it joins with, or when 131,072 rows wait
"""

from __future__ import annotations

from collections.abc import Iterator

from stairwise.algebra.conditions import Condition
from stairwise.algebra.query import Select, time_windows
from stairwise.algebra.spelling import spell_expr
from stairwise.expressions.tree import Expr, Field
from stairwise.join.cross_product import cross_product
from stairwise.join.links import Equalities
from stairwise.join.order import Key, Load, best_order
from stairwise.join.probe import WAIT
from stairwise.join.stay import stay_of


def explain_join(select: Select, *, moves: bool) -> Iterator[str]:
    """The lines of a SELECT; none where it joins nothing. ``moves``: rows that enter and leave windows are joined."""
    if len(select.inputs) < 2:
        return
    windows = time_windows(select)
    aliases = [source.alias for source in select.inputs]
    values = Equalities(Condition(select)).values
    keys = ", ".join(" = ".join(_spelled(aliases[i], expr) for i, expr in of.items()) for of in values)
    if windows is None:
        when = (
            "each row that enters or leaves is joined" if moves else "what the windows hold is joined at every report"
        )
        yield f"join: {when}, {f'by {keys}' if keys else 'every pair'}"
        yield from _pairs(select)
        return
    together = any(len(of) == len(aliases) for of in values)
    text = f"by {keys}" if keys else "among all that are near enough in time"
    text += "; with the other rows of its key where they are many" if together else ""
    yield f"join: each row looks once for its partners, {text}"
    yield from _pairs(select)
    if len(aliases) > 2:
        rows = [float(stay_of(window).ends) for window in windows]
        same = [Key(dict.fromkeys(of, min(rows))) for of in values]  # nothing is known of rates and keys: all equal
        order = best_order(Load([1.0] * len(rows), rows, same))
        names = ", ".join(aliases[i] for i in order)
        yield f"  order: {names} by their windows; while it runs, by the rows and keys that these hold"
    yield f"  when: at the report that shows what it joins with, or when {WAIT:,} rows wait"


def _pairs(select: Select) -> Iterator[str]:
    product = cross_product(select)
    if product is not None:
        yield f"  pairs: {product}"


def _spelled(alias: str, expr: Expr) -> str:
    return f"{alias}.{expr.name}" if isinstance(expr, Field) else spell_expr(expr)
