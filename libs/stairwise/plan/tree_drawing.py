"""EXPLAIN: the plan of a query as a tree, each edge with its update pattern and each operator with its algorithm, and
the rewrites that led to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from stairwise.algebra.spelling import spell_aggregate, spell_expr, spell_window
from stairwise.expressions.tree import Call, Const, Expr, Field, Output
from stairwise.plan import logical
from stairwise.plan.logical import Plan, children, scans
from stairwise.plan.patterns import pattern
from stairwise.plan.physical import Physical
from stairwise.plan.rewrite import Step


def draw_plan(physical: Physical) -> str:
    """The annotated plan of a query, as text for a reader.

    The pattern on a line is that of the edge above the node, on which its results leave. Behind it stands what runs: an
    operator takes in all that is below its line.
    """
    query, rewritten = physical.query, physical.rewritten
    rows = list(_tree(rewritten.plan, "", "", {}, physical.algorithms))
    width = max(len(text) for text, _, _ in rows)
    using = " USING LOOKUPS" if query.by_lookups else ""
    lines = [f"{query.name or 'query'}: EMIT {query.emit.value}{using}"]
    lines += [f"{text.ljust(width)}  {label:9}  {runs}".rstrip() for text, label, runs in rows]
    lines += _steps("applied", [s for s in rewritten.steps if s.applied])
    lines += _steps("refused", [s for s in rewritten.steps if not s.applied])
    return "\n".join(lines)


def _steps(title: str, steps: list[Step]) -> Iterator[str]:
    if steps:
        yield f"{title}:"
    for step in steps:
        yield f"  {step.rule.value} ({step.subject}): {step.reason}"


def _tree(
    plan: Plan, head: str, rest: str, names: dict[int, str], runs: Mapping[int, str]
) -> Iterator[tuple[str, str, str]]:
    """The lines of a plan with their labels; ``head`` goes before the first, ``rest`` before the others."""
    names = names or _qualified_names(plan)
    yield head + _operator(plan, names), str(pattern(plan)), runs.get(id(plan), "")
    below = children(plan)
    for number, child in enumerate(below, 1):
        last = number == len(below)
        inherited = {} if isinstance(plan, logical.Union | logical.Except) else names
        yield from _tree(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), inherited, runs)


def _qualified_names(plan: Plan) -> dict[int, str]:
    """How to call the fields of an input row that joins several streams; empty where there is but one."""
    found = list(scans(plan))
    if len(found) == 1 or isinstance(plan, logical.Union | logical.Except):
        return {}
    return {field.index: f"{scan.alias}.{field.name}" for scan in found for field in scan.fields}


def _operator(plan: Plan, names: dict[int, str]) -> str:
    match plan:
        case logical.Scan():
            return f"Scan {plan.stream.name}" + ("" if plan.alias == plan.stream.name else f" AS {plan.alias}")
        case logical.Window():
            return f"Window {spell_window(plan.window)}"
        case logical.Select():
            return f"Select {spell_expr(_named(plan.condition, _names_for(plan, names)))}"
        case logical.Narrow():
            return f"Project {', '.join(names.get(f.index, f.name) for f in plan.fields) or 'no columns'}"
        case logical.Project():
            return f"Project {', '.join(_output(output, _names_for(plan, names)) for output in plan.outputs)}"
        case logical.Join():
            if plan.condition is None:
                return "Join, every pair"
            return f"Join ON {spell_expr(_named(plan.condition, names))}"
        case logical.Distinct():
            return "Distinct"
        case logical.Group():
            return _aggregate(plan, names)
        case logical.Union():
            return "Union"
        case logical.Except():
            return "Except"


def _names_for(plan: logical.Select | logical.Project, names: dict[int, str]) -> dict[int, str]:
    """Over group rows, and over the rows of an answer, the fields have names of their own."""
    below = plan.input
    while isinstance(below, logical.Select):
        below = below.input
    return {} if isinstance(below, logical.Group | logical.Distinct | logical.Except) else names


def _aggregate(plan: logical.Group, names: dict[int, str]) -> str:
    spelled = [
        f"agg{i} = {spell_aggregate(replace(a, args=tuple(_named(arg, names) for arg in a.args)))}"
        for i, a in enumerate(plan.aggregates)
    ]
    keys = ", ".join(spell_expr(_named(key, names)) for key in plan.keys)
    return " ".join(["Group", *([", ".join(spelled)] if spelled else []), *([f"BY {keys}"] if keys else [])])


def _output(output: Output, names: dict[int, str]) -> str:
    text = spell_expr(_named(output.expr, names))
    plain = isinstance(output.expr, Field) and output.expr.name == output.name
    return text if plain else f"{text} AS {output.name}"


def _named(expr: Expr, names: dict[int, str]) -> Expr:
    """The expression with its fields under other names."""
    match expr:
        case Field():
            return replace(expr, name=names.get(expr.index, expr.name))
        case Const():
            return expr
        case Call():
            return replace(expr, args=tuple(_named(arg, names) for arg in expr.args))
