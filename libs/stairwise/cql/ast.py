"""The syntax of a statement as frozen nodes: what was written and where, before any name or type is known.

Every node has the ``span`` of its text inside the statement. Numbers and durations stay text here;
``literals`` gives them values.
"""

from __future__ import annotations

from dataclasses import dataclass

from stairwise.cql.source import Source, Span

# ── names and literals ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier as it is meant: without the quotes, if there were any."""

    text: str
    span: Span
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """Digits, perhaps with a fraction or an exponent; a sign only where no expression can stand."""

    text: str
    span: Span

    @property
    def is_integer(self) -> bool:
        return self.text.lstrip("-").isdecimal()


@dataclass(frozen=True, slots=True)
class String:
    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class Boolean:
    value: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Null:
    span: Span


@dataclass(frozen=True, slots=True)
class TypedString:
    """``TIMESTAMP '2026-01-31T12:00:00Z'``."""

    type: Name
    text: String
    span: Span


@dataclass(frozen=True, slots=True)
class Duration:
    """``10 SECONDS`` or ``10s``: a count and the name of a unit."""

    count: str
    unit: str
    span: Span


@dataclass(frozen=True, slots=True)
class Size:
    """``64 MB`` or ``64MB``: a count and the name of a unit."""

    count: str
    unit: str
    span: Span


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of a stream's past is kept for lookups: ``2 HOURS AT MOST 512 MB``, or one of the two."""

    time: Duration | None
    size: Size | None
    span: Span


Instant = Number | String | TypedString

# ── expressions ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ColumnRef:
    qualifier: Name | None
    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A scalar function or an aggregate; which one it is, its name decides later."""

    name: Name
    arguments: tuple[Expression, ...]
    span: Span
    distinct: bool = False
    star: bool = False
    filter: Expression | None = None
    """Of FILTER (WHERE ...)."""
    by_from: bool = False
    """Was it written with FROM, as EXTRACT(hour FROM t) is?"""


@dataclass(frozen=True, slots=True)
class Cast:
    function: Name
    operand: Expression
    type: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Unary:
    """``op`` is ``-``, ``+`` or ``NOT``."""

    op: str
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """``op`` is arithmetic, a comparison or ``||``."""

    op: str
    left: Expression
    right: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Logical:
    """A chain of ``AND`` or of ``OR``: flat, so that a long one is not a deep one."""

    op: str
    operands: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Between:
    operand: Expression
    low: Expression
    high: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class InList:
    operand: Expression
    items: tuple[Expression, ...]
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Like:
    operand: Expression
    pattern: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class When:
    condition: Expression
    result: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Case:
    """``operand`` is that of the simple form, CASE x WHEN 1 THEN ...; None in the searched form."""

    operand: Expression | None
    whens: tuple[When, ...]
    otherwise: Expression | None
    span: Span


Expression = (
    Number
    | String
    | Boolean
    | Null
    | TypedString
    | ColumnRef
    | FunctionCall
    | Cast
    | Unary
    | Binary
    | Logical
    | IsNull
    | Between
    | InList
    | Like
    | Case
)

# ── windows ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """The column of TIMESTAMP BY, and what its numbers count where that is said."""

    name: Name
    unit: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Unlimited:
    """FUTURE UNLIMITED."""

    span: Span


@dataclass(frozen=True, slots=True)
class Option:
    """A word with a value, of a window (SLIDE, LAG, ...) or of CREATE STREAM and CREATE TABLE (LATENESS, KEY, ...)."""

    keyword: str
    value: Duration | Unlimited | Number | Name | TimeColumn | Retention | tuple[Name, ...] | None
    span: Span


@dataclass(frozen=True, slots=True)
class RangeClause:
    range: Duration
    options: tuple[Option, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TumbleClause:
    range: Duration
    options: tuple[Option, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class NowClause:
    span: Span


@dataclass(frozen=True, slots=True)
class LandmarkClause:
    start: Instant | None
    end: Instant | None
    options: tuple[Option, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RowsClause:
    rows: Number
    slide: Option | None
    lag: Option | None
    span: Span


@dataclass(frozen=True, slots=True)
class PartitionClause:
    keys: tuple[Name, ...]
    rows: Number
    slide: Option | None
    lag: Option | None
    span: Span


@dataclass(frozen=True, slots=True)
class MultiClause:
    ranges: tuple[Duration, ...]
    slides: tuple[Duration, ...]
    horizon: Duration | None
    weights: tuple[Number, ...] | None
    span: Span


WindowClause = RangeClause | TumbleClause | NowClause | LandmarkClause | RowsClause | PartitionClause | MultiClause

# ── relations ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Star:
    """``*``, or ``a.*``."""

    qualifier: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Alias:
    name: Name
    explicit: bool
    """Was AS written?"""


@dataclass(frozen=True, slots=True)
class Item:
    expression: Expression
    alias: Alias | None


@dataclass(frozen=True, slots=True)
class SourceClause:
    """A stream in FROM; ``on`` is the condition of the JOIN that brought it in, if one did."""

    stream: Name
    window: WindowClause | None
    alias: Alias | None
    on: Expression | None = None


@dataclass(frozen=True, slots=True)
class Select:
    distinct: bool
    items: tuple[Item | Star, ...]
    sources: tuple[SourceClause, ...]
    where: Expression | None
    group_by: tuple[Expression, ...]
    having: Expression | None
    span: Span
    """Of the word SELECT."""


@dataclass(frozen=True, slots=True)
class SetOperation:
    """``op`` is UNION or EXCEPT."""

    op: str
    left: Relation
    right: Relation
    span: Span
    """Of the word UNION or EXCEPT."""


Relation = Select | SetOperation

# ── statements ──────────────────────────────────────────────────────────────────────────────────────────

NOWHERE = Source("", 0, 0)


@dataclass(frozen=True, slots=True)
class OrderTerm:
    expression: Expression
    direction: Name | None
    """ASC or DESC, if it was written; any other word is a mistake."""

    @property
    def descending(self) -> bool:
        return self.direction is not None and self.direction.text.upper() == "DESC"


@dataclass(frozen=True, slots=True)
class Ordering:
    """ORDER BY and LIMIT, of which one may be left out."""

    terms: tuple[OrderTerm, ...]
    limit: Number | None
    span: Span
    """Of the words ORDER BY, or of LIMIT."""


@dataclass(frozen=True, slots=True)
class SelectStatement:
    relation: Relation
    emit: Name | None
    """RSTREAM, ISTREAM, DSTREAM or CHANGES, if it was written."""
    using: Span | None = None
    """Of USING LOOKUPS, if it was written."""
    ordering: Ordering | None = None
    source: Source = NOWHERE
    start: int = 0
    """Where the SELECT begins inside its statement (after CREATE QUERY ... AS or EXPLAIN)."""

    @property
    def text(self) -> str:
        return self.source.text[self.start :].strip()


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    name: Name
    type: Name
    not_null: bool


@dataclass(frozen=True, slots=True)
class CreateStream:
    name: Name
    columns: tuple[ColumnDefinition, ...]
    options: tuple[Option, ...]
    if_not_exists: bool = False
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class AlterStream:
    """An option without a value goes back to its default."""

    name: Name
    options: tuple[Option, ...]
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class DropStream:
    name: Name
    if_exists: bool = False
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class SealStream:
    name: Name
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class SealTable:
    name: Name
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class CreateTable:
    name: Name
    columns: tuple[ColumnDefinition, ...]
    options: tuple[Option, ...]
    if_not_exists: bool = False
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class DropTable:
    name: Name
    if_exists: bool = False
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class CreateQuery:
    name: Name
    select: SelectStatement
    if_not_exists: bool = False
    replaces: bool = False
    """Was it written with OR REPLACE?"""
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class RestartQuery:
    """Of a query that operators has set aside."""

    name: Name
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class DropQuery:
    name: Name
    if_exists: bool = False
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class Explain:
    """Of a query that exists, by name, or of a SELECT that is never started; ANALYZE: with what it costs as it runs."""

    target: Name | SelectStatement
    analyze: bool = False
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class ShowListing:
    """SHOW STREAMS, TABLES or QUERIES."""

    what: Name
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class Describe:
    name: Name
    source: Source = NOWHERE


# ── authority ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class TargetClause:
    """What a privilege is on. ``kind`` is STREAM, TABLE or QUERY, empty where it was not written; NAMESPACE of
    ``name.*``, EVERYTHING of ``*``."""

    kind: str
    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class GrantPrivileges:
    """GRANT, or REVOKE, of privileges."""

    privileges: tuple[Name, ...]
    targets: tuple[TargetClause, ...]
    grantees: tuple[Name, ...]
    revoked: bool = False
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class GrantRole:
    """GRANT ROLE, or REVOKE ROLE."""

    role: Name
    members: tuple[Name, ...]
    revoked: bool = False
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class CreateRole:
    name: Name
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class DropRole:
    name: Name
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class ShowGrants:
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class SetNamespace:
    """CREATE NAMESPACE; ``altered``: ALTER NAMESPACE, which takes away the quotas that it does not name."""

    name: Name
    quotas: tuple[Option, ...]
    altered: bool = False
    source: Source = NOWHERE


@dataclass(frozen=True, slots=True)
class DropNamespace:
    name: Name
    source: Source = NOWHERE


AuthorityStatement = GrantPrivileges | GrantRole | CreateRole | DropRole | ShowGrants | SetNamespace | DropNamespace

Statement = (
    CreateStream
    | AlterStream
    | DropStream
    | SealStream
    | SealTable
    | CreateTable
    | DropTable
    | CreateQuery
    | RestartQuery
    | DropQuery
    | Explain
    | ShowListing
    | Describe
    | SelectStatement
    | AuthorityStatement
)
