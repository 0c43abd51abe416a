"""The forms of SELECT that can be run in parts: over rows, and over groups of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from sqlglot import exp

from nilometer.past.part_trees import (
    MERGED,
    PART_COLUMN,
    PARTS,
    by_first,
    cast_large,
    cast_to,
    key_name,
    mean,
    merged_column,
    number_sum,
    part_column,
    same_values,
    table,
    unit_name,
)

AGGREGATES: Final = frozenset(
    {"bool_and", "bool_or", "count", "count_if", "count_star", "max", "min", "sum"}
)
_ALLOWED: Final = frozenset(
    {
        *("expressions", "from_", "joins", "where", "group", "having"),
        *("order", "limit", "offset", "distinct", "with_"),
    }
)
_SUMS: Final = (exp.Count, exp.CountIf)
_THEMSELVES: Final = (exp.LogicalAnd, exp.LogicalOr, exp.Max, exp.Min, exp.Sum)


class NotInPartsError(Exception):
    """A query cannot be run in parts; the message says why."""


@dataclass(frozen=True)
class Whole:
    """The query over all parts."""

    query: exp.Select
    outer: exp.Select
    """The part of it that comes from the user's query."""


class PartForm(Protocol):
    """How a SELECT is run in parts."""

    part: exp.Select
    has_groups: bool
    is_smaller: bool
    """Whether parts have fewer rows than were read."""

    def whole(self, types: Sequence[str]) -> Whole:
        """The query over the parts, whose columns have these types."""


def forms_of(
    select: exp.Select,
    entry: exp.Expr,
    names: Sequence[str],
    known: Collection[str],
    most_rows: int | None,
) -> PartForm:
    """The form of a SELECT that answers with columns of these names.

    `entry` is what is divided into parts; `known` are the columns of all tables, in lower case.
    """
    if any(value for name, value in select.args.items() if name not in _ALLOWED):
        raise NotInPartsError("it has a clause that needs all rows together")
    if select.find(exp.Window, exp.TableSample, exp.Pivot, exp.WithinGroup):
        raise NotInPartsError("it has a clause that needs all rows together")
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise NotInPartsError("it has DISTINCT ON")
    _require_driving(select, entry)
    paged = _paged(select, most_rows)
    units = list(_aggregates(select))
    if select.args.get("group") or select.args.get("having") or units:
        return _Groups.of(select, names, known)
    return _Rows.of(select, names, paged)


def _require_driving(select: exp.Select, entry: exp.Expr) -> None:
    """Refuse joins in which rows of other tables than the large one may stand alone."""
    has_come = select.args["from_"].this is entry
    joins = select.args.get("joins") or []
    for one in (select.args["from_"], *joins):
        if any(value for name, value in one.this.args.items() if name not in ("this", "alias")):
            raise NotInPartsError("it reads more than a plain table")
    for join in joins:
        if not isinstance(join.this, exp.Table | exp.Subquery):
            raise NotInPartsError("it joins something other than a table")
        if join.method.upper() not in ("", "NATURAL"):
            raise NotInPartsError(f"it has {join.method.upper()} JOIN")
        side, kind = join.side.upper(), join.kind.upper()
        is_inner = not side and kind in ("", "INNER", "CROSS")
        keeps = (side == "LEFT" and kind in ("", "OUTER")) or kind in ("SEMI", "ANTI")
        if not is_inner and not (keeps and has_come):
            raise NotInPartsError("it has a join whose rows need not come from the large table")
        has_come = has_come or join.this is entry


def _paged(select: exp.Select, most_rows: int | None) -> int | None:
    """How many rows of a part can matter; None: all."""
    limit, offset = (_number(select.args.get(name)) for name in ("limit", "offset"))
    counts = [one for one in (limit, most_rows) if one is not None]
    return min(counts) + (offset or 0) if counts else None


def _number(clause: exp.Expr | None) -> int | None:
    if clause is None:
        return None
    literal = clause.expression if isinstance(clause, exp.Limit | exp.Offset) else None
    if not isinstance(literal, exp.Literal) or literal.is_string or not literal.name.isdecimal():
        raise NotInPartsError("LIMIT and OFFSET are not plain numbers")
    return int(literal.name)


@dataclass
class _Rows:
    """Plain rows, sorted or not, distinct or not."""

    part: exp.Select
    select: exp.Select
    names: Sequence[str]
    orders: list[exp.Ordered]
    """By columns of PARTS, or by the number of a column."""
    is_smaller: bool
    has_groups: bool = False

    @classmethod
    def of(cls, select: exp.Select, names: Sequence[str], paged: int | None) -> _Rows:
        part = select.copy()
        is_distinct = select.args.get("distinct") is not None
        orders, hidden = [], list[exp.Expr]()
        for one in _orders(select):
            number = _output(one.this, names)
            if number is None:
                if is_distinct:
                    raise NotInPartsError(
                        "DISTINCT is ordered by an expression that is not selected"
                    )
                _require_no_alias(one.this, select)
                number = len(names) + len(hidden)
                hidden.append(exp.alias_(one.this.copy(), f"hidden order {number}", quoted=True))
                orders.append(_ordered(one, part_column(number)))
            else:
                orders.append(_ordered(one, exp.Literal.number(number + 1)))
        part.set("expressions", [*part.expressions, *hidden])
        part.set("offset", None)
        part.set(
            "limit", None if paged is None else exp.Limit(expression=exp.Literal.number(paged))
        )
        if paged is None:
            part.set("order", None)
        return cls(part, select, names, orders, is_distinct or paged is not None)

    def whole(self, types: Sequence[str]) -> Whole:
        columns = [
            exp.alias_(cast_large(part_column(n), types[n]), name, quoted=True)
            for n, name in enumerate(self.names)
        ]
        query = exp.select(*columns).from_(table(PARTS))
        _put_rest(query, self.select, self.orders)
        return Whole(query, exp.select("1"))


@dataclass
class _Groups:
    """Aggregates of groups, or of all rows, that can be merged from those of parts."""

    part: exp.Select
    select: exp.Select
    names: Sequence[str]
    keys: list[exp.Expr]
    merges: list[Callable[[Sequence[str]], exp.Expr]]
    columns: list[exp.Expr]
    having: exp.Expr | None
    orders: list[exp.Ordered]
    has_groups: bool = True
    is_smaller: bool = True

    @classmethod
    def of(cls, select: exp.Select, names: Sequence[str], known: Collection[str]) -> _Groups:
        replacing = _Replacing(select, _keys(select, known))
        columns = [replacing(one.unalias()) for one in select.expressions]
        if len(columns) != len(names):
            raise NotInPartsError("it selects columns without naming each of them")
        having = select.args.get("having")
        orders = []
        for one in _orders(select):
            number = _output(one.this, names)
            if number is None:
                _require_no_alias(one.this, select)
                orders.append(_ordered(one, replacing(one.this)))
            else:
                orders.append(_ordered(one, exp.Literal.number(number + 1)))
        condition = None if having is None else replacing(having.this)
        part = select.copy()
        for name in ("having", "order", "limit", "offset", "distinct", "group"):
            part.set(name, None)
        expressions = [*replacing.keys, *replacing.parts]
        aliased = [exp.alias_(one.copy(), f"{PART_COLUMN}{n}") for n, one in enumerate(expressions)]
        part.set("expressions", aliased)
        if replacing.keys:
            part.set("group", by_first(len(replacing.keys)))
        return cls(
            part, select, names, replacing.keys, replacing.merges, columns, condition, orders
        )

    def whole(self, types: Sequence[str]) -> Whole:
        keys = [
            exp.alias_(cast_large(part_column(n), types[n]), key_name(n))
            for n in range(len(self.keys))
        ]
        merges = [exp.alias_(one(types), unit_name(n)) for n, one in enumerate(self.merges)]
        inner = exp.select(*keys, *merges).from_(table(PARTS))
        if keys:
            inner.set("group", by_first(len(keys)))
        named = zip(self.columns, self.names, strict=True)
        outer = exp.select(*(exp.alias_(one.copy(), name, quoted=True) for one, name in named))
        _put_rest(outer, self.select, self.orders)
        if self.having is not None:
            outer = outer.where(self.having.copy())
        alias = exp.TableAlias(this=exp.to_identifier(MERGED, quoted=True))
        query = outer.from_(exp.Subquery(this=inner, alias=alias))
        return Whole(query, outer.from_(table(MERGED)))


class _Replacing:
    """Replaces aggregates and group keys with columns of merged parts."""

    def __init__(self, select: exp.Select, keys: list[exp.Expr]) -> None:
        first = select.args["from_"].this.alias_or_name.lower()
        self._needless = None if select.args.get("joins") else first
        """The optional qualifier of a column: the name of the only table."""
        self.keys = keys
        self._known_keys = [self._canonical(one) for one in keys]
        self._units: list[str] = []
        self.parts: list[exp.Expr] = []
        self.merges: list[Callable[[Sequence[str]], exp.Expr]] = []

    def __call__(self, tree: exp.Expr) -> exp.Expr:
        if any(
            isinstance(one, exp.Query | exp.Star) and not _is_counted(one) for one in tree.walk()
        ):
            raise NotInPartsError("it has a subquery next to its aggregates")
        replaced = tree.copy().transform(self._one)
        if any(one.table != MERGED for one in replaced.find_all(exp.Column)):
            raise NotInPartsError("it selects something other than aggregates and grouping keys")
        return replaced

    def _one(self, node: exp.Expr) -> exp.Expr:
        text = self._canonical(node)
        if text in self._known_keys and not isinstance(node, exp.Identifier):
            return merged_column(key_name(self._known_keys.index(text)))
        if isinstance(node, exp.Filter | exp.AggFunc):
            if text not in self._units:
                self._add(node)
                self._units.append(text)
            return merged_column(unit_name(self._units.index(text)))
        return node

    def _add(self, unit: exp.Expr) -> None:
        inner: exp.Expr = unit.this if isinstance(unit, exp.Filter) else unit
        name = inner.sql_name() if isinstance(inner, exp.AggFunc) else inner.name
        if any(unit.find_all(exp.Distinct, exp.Order)) or inner.args.get("expressions"):
            raise NotInPartsError(f"{name} needs all rows of a group together")
        at = len(self.keys) + len(self.parts)
        if isinstance(inner, exp.Avg):
            self.parts += [same_values(unit, exp.Sum), same_values(unit, exp.Count)]
            self.merges.append(lambda _: mean(at))
        elif isinstance(inner, _SUMS):
            self.parts.append(unit.copy())
            self.merges.append(lambda types: cast_to(number_sum(at), types[at]))
        elif isinstance(inner, _THEMSELVES):
            self.parts.append(unit.copy())
            self.merges.append(
                lambda types: cast_large(type(inner)(this=part_column(at)), types[at])
            )
        else:
            raise NotInPartsError(f"{name} needs all rows of a group together")

    def _canonical(self, tree: exp.Expr) -> str:
        copied = tree.copy()
        while isinstance(copied, exp.Paren):
            copied = copied.this
        for one in copied.find_all(exp.Column):
            one.set("this", exp.to_identifier(one.name.lower()))
            table = one.table.lower()
            has_needed = table and table != self._needless
            one.set("table", exp.to_identifier(table) if has_needed else None)
        return str(copied.sql(dialect="duckdb", comments=False))


def _is_counted(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Star) and isinstance(tree.parent, exp.Count)


def _aggregates(select: exp.Select) -> Iterator[exp.Expr]:
    """The aggregates of a SELECT itself, without its subqueries."""
    for one in select.find_all(exp.AggFunc):
        if one.find_ancestor(exp.Select) is select:
            yield one


def _keys(select: exp.Select, known: Collection[str]) -> list[exp.Expr]:
    """The keys that a SELECT groups by, with the names of selected expressions resolved."""
    group = select.args.get("group")
    if group is None:
        return []
    lists = any(isinstance(one, exp.Rollup | exp.Cube) for one in group.expressions)
    if lists or any(value for name, value in group.args.items() if name != "expressions"):
        raise NotInPartsError("it groups by more than a list of expressions")
    taken = set(known)
    for one in (select.args["from_"], *(select.args.get("joins") or [])):
        taken |= {alias.alias.lower() for alias in one.find_all(exp.Alias)}
    return [_key(one, select, taken) for one in group.expressions]


def _key(tree: exp.Expr, select: exp.Select, taken: Collection[str]) -> exp.Expr:
    key: exp.Expr = tree
    if isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdecimal():
        key = select.expressions[int(tree.name) - 1].unalias()
    else:
        aliases = {
            one.alias.lower(): one.this for one in select.expressions if isinstance(one, exp.Alias)
        }
        if isinstance(tree, exp.Column) and not tree.table and tree.name.lower() in aliases:
            aliased = aliases[tree.name.lower()]
            is_same = isinstance(aliased, exp.Column) and aliased.name.lower() == tree.name.lower()
            if tree.name.lower() in taken and not is_same:
                raise NotInPartsError(
                    f"{tree.name} is both a column and an alias of another expression"
                )
            key = aliased
    if key.find(exp.Query, exp.Star):
        raise NotInPartsError("it groups by a subquery or a star")
    copied: exp.Expr = key.copy()
    return copied


def _orders(select: exp.Select) -> list[exp.Ordered]:
    order = select.args.get("order")
    return [] if order is None else order.expressions


def _output(tree: exp.Expr, names: Sequence[str]) -> int | None:
    """The position of the answer's column that ORDER BY names, if any."""
    if isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdecimal():
        return int(tree.name) - 1
    if not isinstance(tree, exp.Column) or tree.table:
        return None
    places = [n for n, one in enumerate(names) if one.lower() == tree.name.lower()]
    return places[0] if len(places) == 1 else None


def _require_no_alias(tree: exp.Expr, select: exp.Select) -> None:
    """Refuse an ORDER BY expression in which a name may mean a column or a selected expression."""
    aliases = {one.alias.lower() for one in select.expressions if isinstance(one, exp.Alias)}
    if any(not one.table and one.name.lower() in aliases for one in tree.find_all(exp.Column)):
        raise NotInPartsError("it is ordered by an expression over an alias")


def _put_rest(query: exp.Select, select: exp.Select, orders: list[exp.Ordered]) -> None:
    """Give a query the ordering, limit and offset of another."""
    if orders:
        query.set("order", exp.Order(expressions=[one.copy() for one in orders]))
    for name in ("limit", "offset", "distinct"):
        if (clause := select.args.get(name)) is not None:
            query.set(name, clause.copy())


def _ordered(term: exp.Ordered, by: exp.Expr) -> exp.Ordered:
    ordered = term.copy()
    ordered.set("this", by)
    return ordered
