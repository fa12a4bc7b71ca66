"""What a lookup can say: clauses that only a registered query can have get an error that points at them."""

from __future__ import annotations

from dataclasses import replace

from stairwise.cql import ast
from stairwise.cql.window_clauses import row_count


def checked(statement: ast.SelectStatement) -> tuple[ast.SelectStatement, int]:
    """The statement as a query could have it, and the rows that LAG leaves out; points at what no lookup can have."""
    source, relation = statement.source, statement.relation
    if isinstance(relation, ast.SetOperation):
        raise source.error(relation.span, f"a lookup has no {relation.op}", hint="ask for both sides in one LookupMany")
    if statement.emit is not None:
        raise source.error(
            statement.emit.span, "a lookup has one answer, so it has no EMIT", hint="leave it out, or CREATE QUERY"
        )
    if len(relation.sources) > 1:
        raise source.error(relation.sources[1].stream.span, "a lookup reads one stream", hint="CREATE QUERY can join")
    clause = relation.sources[0].window
    if clause is None:
        raise source.error(
            relation.sources[0].stream.span, "a lookup needs a window", hint="write [RANGE 300 SECONDS] after the name"
        )
    if isinstance(clause, ast.TumbleClause | ast.MultiClause):
        raise source.error(
            clause.span, "a lookup has no windows of this kind", hint="write [RANGE ...], [FROM ...] or [ROWS n]"
        )
    if isinstance(clause, ast.NowClause):
        raise source.error(
            relation.sources[0].stream.span,
            "a lookup has no NOW: it is answered at T, which need not end a granule",
            hint="write [RANGE 1 SECOND], or as long as the stream's granule is",
        )
    counted = clause if isinstance(clause, ast.RowsClause | ast.PartitionClause) else None
    for option in getattr(clause, "options", ()) if counted is None else (counted.slide,):
        if option is not None and option.keyword in ("SLIDE", "OFFSET", "RETAIN"):
            raise source.error(
                option.span, f"a lookup has no {option.keyword}: it is answered at once, and once", hint="leave it out"
            )
    if counted is None or counted.lag is None:
        return statement, 0
    plain = replace(relation.sources[0], window=replace(counted, lag=None))
    return replace(statement, relation=replace(relation, sources=(plain,))), row_count(source, counted.lag.value, "LAG")
