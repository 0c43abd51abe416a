"""The parts of a call, however the parser has read it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def kind_of(node: exp.Expr) -> type[exp.Expr] | str:
    """The kind of a call: its class, or its name if the parser does not know it."""
    return node.name.lower() if isinstance(node, exp.Anonymous) else type(node)


def arguments_of(node: exp.Expr) -> Iterator[exp.Expr]:
    """The arguments of a call, from left to right."""
    for value in node.args.values():
        if isinstance(value, exp.Expr):
            yield value
        elif isinstance(value, list):
            yield from (one for one in value if isinstance(one, exp.Expr))


def text_of(tree: exp.Expr) -> str | None:
    """The value of a text that stands in the statement; None: it is something else."""
    if isinstance(tree, exp.Paren):
        return text_of(tree.this)
    return str(tree.this) if isinstance(tree, exp.Literal) and tree.is_string else None
