"""The canonical form of conditions: it says what the condition says, and all spellings of a condition have it."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import example, given
from hypothesis import strategies as st

from stairwise.expressions.canonical import canonical
from stairwise.expressions.evaluate import evaluate
from stairwise.expressions.faults import Faults
from stairwise.expressions.tree import Call, Const, Expr, Field, Value
from stairwise.schema import Type
from tests.property.test_expressions import ANY_EXPRESSION, COMPARISONS, ROWS, columns_of, expressions, same

MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
DUAL = {"and": "or", "or": "and"}
A = Field(0, "a", Type.BIGINT)
X = Field(2, "x", Type.DOUBLE)
ZERO = Const(0, Type.BIGINT)
TRUE, FALSE = Const(True, Type.BOOLEAN), Const(False, Type.BOOLEAN)


def condition(op: str, *args: Expr) -> Call:
    return Call(op, args, Type.BOOLEAN)


BY_ZERO = condition("<", Call("/", (A, ZERO), Type.BIGINT), Const(1, Type.BIGINT))
OVERFLOW = condition("<", Call("abs", (Const(-(2**63), Type.BIGINT),), Type.BIGINT), A)


@given(expr=ANY_EXPRESSION, rows=ROWS)
@example(condition("and", BY_ZERO, BY_ZERO), [(1,) + (None,) * 7])
@example(condition("or", TRUE, BY_ZERO), [(1,) + (None,) * 7])
@example(condition("and", FALSE, OVERFLOW), [(1,) + (None,) * 7])
@example(condition("=", X, Const(-0.0, Type.DOUBLE)), [(None, None, 0.0) + (None,) * 5])
@example(Call("*", (X, Const(-0.0, Type.DOUBLE)), Type.DOUBLE), [(None, None, 1.0) + (None,) * 5])
@example(condition("not", condition("<", X, Const(1.0, Type.DOUBLE))), [(None, None, float("nan")) + (None,) * 5])
def test_the_canonical_form_has_the_same_value_and_faults_in_every_row(
    expr: Expr, rows: list[tuple[Value, ...]]
) -> None:
    form = canonical(expr)
    expected_faults, faults = Faults(), Faults()
    expected = evaluate(expr, columns_of(rows), len(rows), expected_faults).to_pylist()
    result = evaluate(form, columns_of(rows), len(rows), faults)
    assert result.type == expr.type.arrow
    assert all(map(same, _plain(result.to_pylist()), _plain(expected))), (form, expected)
    assert faults == expected_faults
    assert canonical(form) == form
    assert repr(canonical(form)) == repr(form)


def _plain(values: list[object]) -> list[Value]:
    return [int(v) if isinstance(v, Decimal) else v for v in values]  # type: ignore[misc]


@st.composite
def spellings(draw: st.DrawFn, expr: Expr) -> Expr:
    """The same condition by the laws of logic, nothing evaluated more or less often."""
    if not isinstance(expr, Call):
        return expr
    args = tuple(draw(spellings(arg)) for arg in expr.args)
    form = Call(expr.op, args, expr.type)
    if expr.op in COMPARISONS:
        form = condition(MIRRORED[expr.op], *args[::-1]) if draw(st.booleans()) else form
        form = condition("not", condition(OPPOSITE[form.op], *form.args)) if draw(st.booleans()) else form
    elif expr.op in DUAL:
        mixed = draw(st.permutations(args))
        split = draw(st.integers(1, len(mixed)))
        within = mixed[0] if split == 1 else condition(expr.op, *mixed[:split])
        form = condition(expr.op, within, *mixed[split:]) if split < len(mixed) else condition(expr.op, *mixed)
        if draw(st.booleans()):
            form = condition("not", condition(DUAL[expr.op], *(condition("not", arg) for arg in form.args)))
    elif expr.op == "in":
        subject, *members = args
        form = condition("in", subject, *draw(st.permutations(members)))
        if isinstance(subject, Field) and draw(st.booleans()):
            form = condition("or", *(condition("=", subject, member) for member in form.args[1:]))
    if expr.type is Type.BOOLEAN and draw(st.integers(0, 4)) == 0:
        form = condition("not", condition("not", form))
    return form


@given(data=st.data(), expr=expressions(Type.BOOLEAN))
def test_all_spellings_of_a_condition_have_one_canonical_form(data: st.DataObject, expr: Expr) -> None:
    spelled = data.draw(spellings(expr))
    assert canonical(spelled) == canonical(expr)
    assert repr(canonical(spelled)) == repr(canonical(expr))
