"""Every aggregate by its definition, in exact rational arithmetic rounded once at the end.

FIRST and LAST take a NULL for what the row says; all others but COUNT(*) pass over it. Of infinities and NaN a sum
makes what IEEE addition does in any order: NaN if there is a NaN or infinities of both signs, else the infinity. In the
order of MIN, MAX and QUANTILE NaN is last. The approximate aggregates are evaluated exactly: who compares them allows
for their stated error.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from stairwise.cql import ast
from stairwise.schema import Instant, Type
from tests.oracle.expressions import Reader, Typed, logical
from tests.oracle.literals import decimal
from tests.oracle.values import Value, canonical, rank

ITEMS = ("TOP", "FREQUENT", "APPROX_FREQUENT", "RECURRING")
"""Aggregates that yield one row per item."""
_TYPES = {"COUNT": Type.BIGINT, "APPROX_COUNT_DISTINCT": Type.BIGINT}
_TYPES |= dict.fromkeys(("AVG", "VARIANCE", "STDDEV", "REGR_SLOPE", "REGR_INTERCEPT"), Type.DOUBLE)
_TYPES |= dict.fromkeys(("QUANTILE", "APPROX_QUANTILE"), Type.DOUBLE)
_TYPES |= dict.fromkeys(("COVAR_POP", "COVAR_SAMP", "CORR"), Type.DOUBLE)
_TYPES |= {"STRING_AGG": Type.STRING, "COUNT_IF": Type.BIGINT}
_OF_ARGUMENT = ("SUM", "MIN", "MAX", "FIRST", "LAST", "MIN_BY", "MAX_BY", *ITEMS)
EDGES = ("WINDOW_START", "WINDOW_END")


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over the rows of a group; ``argument`` is None for COUNT(*)."""

    function: str
    argument: Typed | None
    type: Type | None
    distinct: bool = False
    parameter: Fraction = Fraction(0)
    second: Typed | None = None
    """What CORR, MIN_BY and STRING_AGG take beside it."""
    filter: Typed | None = None
    """Only rows count for which it is true."""

    def counted(self, members: Sequence[Member]) -> Sequence[Member]:
        if self.filter is None:
            return members
        return [member for member in members if self.filter.of(member.values) is True]


@dataclass(frozen=True)
class Member:
    """A row of a group: its values, its time, and under WEIGHTED BY its weight and the step it lies in."""

    values: tuple[Value, ...]
    ts: Instant
    weight: Fraction = Fraction(1)
    step: int = 0


def read_aggregate(call: ast.FunctionCall, reader: Reader, weighted: bool = False) -> Aggregate | None:
    """The aggregate that a call names; None where it is a function of a row."""
    name = call.name.text.upper()
    if name not in (*_TYPES, *_OF_ARGUMENT, "MEDIAN"):
        return None
    argument = reader.read(call.arguments[0]) if call.arguments else None
    parameter = Fraction(*(decimal(second) for second in call.arguments[1:] if isinstance(second, ast.Number)))
    type_ = _TYPES.get(name, argument.type if argument else None)
    if name == "MEDIAN":
        chosen = None if call.filter is None else reader.read(call.filter)
        return Aggregate("QUANTILE", argument, Type.DOUBLE, parameter=Fraction(1, 2), filter=chosen)
    if name == "SUM" and type_ is Type.BIGINT:
        type_ = Type.HUGEINT
    type_ = Type.DOUBLE if weighted else type_
    chosen = None if call.filter is None else reader.read(call.filter)
    if name == "COUNT_IF":
        assert argument is not None, "COUNT_IF takes a condition"
        return Aggregate("COUNT", None, type_, filter=logical("AND", [argument, *([chosen] if chosen else [])]))
    second = reader.read(call.arguments[1]) if len(call.arguments) > 1 else None
    return Aggregate(name, argument, type_, call.distinct, parameter, second, chosen)


def nearest_double(exact: Fraction) -> float:
    """The double nearest to an exact value, an infinity beyond their range."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def aggregate(spec: Aggregate, members: Sequence[Member], tau: Instant, weighted: bool = False) -> Value:
    """The value of a scalar aggregate over a group's rows, which come in stream order."""
    if spec.function in EDGES:
        return tau - int(spec.parameter)
    members = spec.counted(members)
    if spec.argument is None:
        return _count(members, weighted)
    if spec.second is not None and spec.function in _OF_TWO:
        assert isinstance(spec.second, Typed)
        pairs = [(value, canonical(spec.second.of(member.values))) for value, member in _given(spec, members)]
        return _OF_TWO[spec.function](pairs)
    given = _given(spec, members)
    present = [(value, member) for value, member in given if value is not None]
    if spec.distinct:
        present = list({value: (value, member) for value, member in reversed(present)}.values())[::-1]
    values = [value for value, _ in present]
    match spec.function:
        case "COUNT":
            return _count([member for _, member in present], weighted)
        case "APPROX_COUNT_DISTINCT":
            return len(set(values))
        case "MIN":
            return min(values, key=rank, default=None)
        case "MAX":
            return max(values, key=rank, default=None)
        case "FIRST":
            return given[0][0] if given else None
        case "LAST":
            return given[-1][0] if given else None
    numbers = [(_number(value), member) for value, member in present]
    match spec.function:
        case "SUM":
            return _sum(spec.type, numbers)
        case "AVG":
            return _average(numbers)
        case "VARIANCE":
            return _variance(numbers)
        case "STDDEV":
            variance = _variance(numbers)
            return None if variance is None else math.sqrt(variance)
        case "QUANTILE" | "APPROX_QUANTILE":
            return _quantile([number for number, _ in numbers], spec.parameter)
        case "REGR_SLOPE":
            return _line(numbers, tau, intercept=False)
        case "REGR_INTERCEPT":
            return _line(numbers, tau, intercept=True)
    raise ValueError(f"the oracle knows no aggregate {spec.function}")


def _given(spec: Aggregate, members: Sequence[Member]) -> list[tuple[Value, Member]]:
    """What each row has for the argument."""
    assert spec.argument is not None, f"{spec.function} needs an argument"
    return [(canonical(spec.argument.of(member.values)), member) for member in members]


Number = int | float
Weighed = Sequence[tuple[Number, Member]]


def _number(value: Value) -> Number:
    if isinstance(value, bool | str) or value is None:
        raise TypeError(f"{value!r} is no number")
    return value


def _count(members: Sequence[Member], weighted: bool) -> Value:
    return nearest_double(sum((m.weight for m in members), Fraction(0))) if weighted else len(members)


def _special(numbers: Iterable[Number]) -> float | None:
    """What NaN and infinities among the summands make of a sum; None where all are finite."""
    odd = {canonical(n) for n in numbers if not math.isfinite(n)}
    if not odd:
        return None
    return math.nan if len(odd) > 1 else float(odd.pop())  # type: ignore[arg-type]


def _exact_sum(numbers: Weighed) -> Fraction:
    return sum((Fraction(number) * member.weight for number, member in numbers), Fraction(0))


def _sum(type_: Type | None, numbers: Weighed) -> Value:
    if not numbers:
        return None
    if type_ is not Type.DOUBLE:
        return int(_exact_sum(numbers))
    special = _special(number for number, _ in numbers)
    return nearest_double(_exact_sum(numbers)) if special is None else special


def _average(numbers: Weighed) -> Value:
    weight = sum((member.weight for _, member in numbers), Fraction(0))
    if not numbers or weight == 0:
        return None
    special = _special(number for number, _ in numbers)
    return nearest_double(_exact_sum(numbers) / weight) if special is None else special


def _variance(numbers: Weighed) -> float | None:
    """Of a sample: squared distances from the mean over n − 1."""
    n = len(numbers)
    if n < 2:
        return None
    if _special(number for number, _ in numbers) is not None:
        return math.nan
    mean = _exact_sum(numbers) / n
    return nearest_double(sum(((Fraction(x) - mean) ** 2 for x, _ in numbers), Fraction(0)) / (n - 1))


def _quantile(numbers: list[Number], q: Fraction) -> Value:
    """Linear interpolation at q·(n−1) between the neighbours in order."""
    if not numbers:
        return None
    ordered = sorted(numbers, key=rank)
    place = q * (len(ordered) - 1)
    below = ordered[math.floor(place)]
    above = ordered[math.ceil(place)]
    if below == above or place.denominator == 1:
        return float(below)
    special = _special([below, above])
    if special is not None:
        return special
    part = place - math.floor(place)
    return nearest_double(Fraction(below) + (Fraction(above) - Fraction(below)) * part)


def _line(numbers: Weighed, tau: Instant, *, intercept: bool) -> Value:
    """The least squares line through (seconds relative to τ, value): its slope, or its height at τ."""
    n = len(numbers)
    times = [Fraction(member.ts - tau, 1000) for _, member in numbers]
    spread = n * sum((t * t for t in times), Fraction(0)) - sum(times, Fraction(0)) ** 2
    if spread == 0:
        return None
    if _special(number for number, _ in numbers) is not None:
        return math.nan
    total = _exact_sum(numbers)
    products = sum((t * Fraction(x) for t, (x, _) in zip(times, numbers, strict=True)), Fraction(0))
    slope = (n * products - sum(times, Fraction(0)) * total) / spread
    return nearest_double((total - slope * sum(times, Fraction(0))) / n if intercept else slope)


Pairs = Sequence[tuple[Value, Value]]


def _by(pairs: Pairs, *, largest: bool) -> Value:
    """What stands beside the least or greatest, the first of equal ones."""
    there = [(value, by) for value, by in pairs if by is not None]
    if not there:
        return None
    best = (max if largest else min)(rank(by) for _, by in there)
    return next(value for value, by in there if rank(by) == best)


def _joined(pairs: Pairs) -> Value:
    texts = [str(text) for text, _ in pairs if text is not None]
    return str(pairs[0][1]).join(texts) if texts else None


def _covariance(pairs: Pairs, *, sample: bool) -> Value:
    """The mean product of the distances from both means, over n or over n − 1."""
    both = [(_number(y), _number(x)) for y, x in pairs if y is not None and x is not None]
    n = len(both)
    if n < (2 if sample else 1):
        return None
    if _special(number for pair in both for number in pair) is not None:
        return math.nan
    return nearest_double(_products(both) / (n - 1 if sample else n))


def _products(both: Sequence[tuple[Number, Number]]) -> Fraction:
    means = [sum(map(Fraction, side), Fraction(0)) / len(both) for side in zip(*both, strict=True)]
    return sum(((Fraction(y) - means[0]) * (Fraction(x) - means[1]) for y, x in both), Fraction(0))


def _correlation(pairs: Pairs) -> Value:
    """The square root of its square, which is rounded once, with the sign of the covariance."""
    both = [(_number(y), _number(x)) for y, x in pairs if y is not None and x is not None]
    if len(both) < 2:
        return None
    if _special(number for pair in both for number in pair) is not None:
        return math.nan
    together = _products(both)
    spreads = _products([(y, y) for y, _ in both]) * _products([(x, x) for _, x in both])
    if spreads == 0:
        return None
    return math.copysign(math.sqrt(nearest_double(together**2 / spreads)), 1 if together >= 0 else -1)


_OF_TWO: dict[str, Callable[[Pairs], Value]] = {
    "MIN_BY": lambda pairs: _by(pairs, largest=False),
    "MAX_BY": lambda pairs: _by(pairs, largest=True),
    "STRING_AGG": _joined,
    "COVAR_POP": lambda pairs: _covariance(pairs, sample=False),
    "COVAR_SAMP": lambda pairs: _covariance(pairs, sample=True),
    "CORR": _correlation,
}


def items(spec: Aggregate, members: Sequence[Member], steps: int) -> list[tuple[Value, int]]:
    """The (item, count) rows of TOP, FREQUENT and RECURRING, by count descending, then item.

    TOP(x, k) has the k first of that order; FREQUENT(x, theta) those that more than theta of the values are;
    RECURRING(x) those in every one of the ``steps`` of a multi-granular window (seed 003, section IV.C).
    """
    members = spec.counted(members)
    present = [(value, member.step) for value, member in _given(spec, members) if value is not None]
    counts: Counter[Value] = Counter(value for value, _ in present)
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], rank(entry[0])))
    if spec.function == "TOP":
        return ordered[: int(spec.parameter)]
    if spec.function == "FREQUENT":
        threshold = spec.parameter * len(present)
        return [entry for entry in ordered if entry[1] > threshold]
    if spec.function == "RECURRING":
        seen = set(present)
        return [entry for entry in ordered if all((entry[0], step) in seen for step in range(steps))]
    raise ValueError(f"{spec.function} yields no items")


def known_items(spec: Aggregate, members: Sequence[Member], ends: Sequence[Instant]) -> list[tuple[Value, int]]:
    """APPROX_FREQUENT(x, k) (seed 001, chapter 6): items that the k first of each sub-window tell enough of.

    ``ends`` are those of the sub-windows that the members lie in. An item that is in no list of a sub-window occurs
    there at most as often as its k-th; shown is what is known to occur more often than all of these together.
    """
    most = int(spec.parameter)
    known: Counter[Value] = Counter()
    bound = 0
    for end in sorted(set(ends)):
        mine = [member for member, other in zip(members, ends, strict=True) if other == end]
        counts = Counter(value for value, _ in _given(spec, spec.counted(mine)) if value is not None)
        listed = sorted(counts.items(), key=lambda entry: (-entry[1], rank(entry[0])))[:most]
        known.update(dict(listed))
        bound += listed[-1][1] if len(listed) == most else 0
    return sorted((entry for entry in known.items() if entry[1] > bound), key=lambda entry: (-entry[1], rank(entry[0])))
