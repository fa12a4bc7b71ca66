"""By which column the rows of a query are spread over shards.

GROUP BY ticker, DISTINCT ticker     by ticker: a shard has all rows of its groups or values
anything else                        whole, on one shard
"""

from __future__ import annotations

from stairwise.algebra.query import Query, Select
from stairwise.expressions.tree import Field
from stairwise.operators.signature import DistinctSignature
from stairwise.plan.signature import published_signature_of
from stairwise.schema import Type
from stairwise.windows.spec import MultiWindow, TimeWindow

HASHED = frozenset({Type.STRING, Type.BIGINT, Type.BOOLEAN, Type.TIMESTAMP})
"""Types whose equal values have equal text. (−0.0 equals 0.0 in a group key, and does not read so.)"""


def shard_key(query: Query) -> str | None:
    """The first group key, or value of DISTINCT, that is a plain column, where rows of one group or value alone decide
    its answer; None where the query runs whole on one shard."""
    relation = query.relation
    if query.by_lookups or not isinstance(relation, Select) or len(relation.inputs) != 1:
        return None
    if not isinstance(relation.inputs[0].window, TimeWindow | MultiWindow):
        return None
    is_distinct = isinstance(published_signature_of(query), DistinctSignature)
    for key in [output.expr for output in relation.outputs] if is_distinct else relation.keys:
        if isinstance(key, Field) and key.type in HASHED:
            return key.name
    return None
