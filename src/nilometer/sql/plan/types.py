"""The types of expressions: by Spark's rules where evaluated here, else from the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from nilometer.errors import (
    Place,
    PredicateError,
    SqlError,
    SqlTypeError,
    UnavailableError,
)
from nilometer.kernels.expression_types import type_name
from nilometer.kernels.type_of import type_of
from nilometer.model.expressions import Argument
from nilometer.sql.catalog import Catalog, NoEngineError, Relation
from nilometer.sql.expressions.compile_scalar import ELSEWHERE_HINT, NotInSubsetError, compile_over
from nilometer.sql.expressions.scalars import (
    RESULT_TIME,
    ColumnRef,
    ComputedRef,
    Ref,
    ResolvedColumn,
    Scalar,
    column,
    rebuild,
    spell_own,
)
from nilometer.sql.parse.places import place_of
from nilometer.sql.plan.below_windows import BelowWindows
from nilometer.sql.plan.function_calls import blame_call
from nilometer.sql.plan.join_plan import Source, WindowsClause
from nilometer.sql.plan.type_errors import type_error

TIMESTAMP = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Types:
    """Determines the types of expressions over the sources of a query."""

    catalog: Catalog
    sources: tuple[Source, ...]

    def of(self, scalar: Scalar) -> pa.DataType | None:
        """The type of an expression; None if only Spark can tell, after the join."""
        if len(scalar.streams) > 1 or RESULT_TIME in scalar.columns:
            try:
                return self.of_subset(self.lift(scalar))
            except NotInSubsetError:
                return None
        try:
            return self.of_subset(scalar)
        except NotInSubsetError as reason:
            return self._of_engine(scalar, reason)
        except SqlTypeError as error:  # Spark may allow it: ts > '2026-01-01'
            try:
                return self._of_engine(scalar)
            except SqlError:
                raise error from None

    def of_ref(self, ref: Ref) -> pa.DataType:
        """The type of a column."""
        if ref == RESULT_TIME:
            return TIMESTAMP
        if isinstance(ref, ComputedRef):
            place = place_of(ref.tree, self._source(ref.stream).place.sql)
            kind = self.of(Scalar(ref.tree, place))
            assert kind is not None
            return kind
        relation = self._source(ref.stream).relation
        if ref.column not in relation.columns:
            return TIMESTAMP
        kind = relation.types[relation.columns.index(ref.column)]
        return type_of(Argument(0, ref.fields), [kind])

    def require_condition(self, scalar: Scalar) -> None:
        """Refuse a condition that is not boolean."""
        kind = self.of(scalar)
        if kind is not None and not (pat.is_boolean(kind) or pat.is_null(kind)):
            raise SqlTypeError(
                "a condition must be true or false",
                place=scalar.place,
                detail=f"{scalar} is of type {type_name(kind)}",
                hint="compare it with something",
            )

    def lift(self, scalar: Scalar) -> Scalar:
        """The same expression, with the parts on one stream that only Spark can compute lifted out.

        Such a part becomes a column that is computed before the join.
        """
        return Scalar(self._lift(scalar.tree, scalar.place), scalar.place)

    def _lift(self, tree: exp.Expr, place: Place) -> exp.Expr:
        if isinstance(tree, ResolvedColumn | exp.Lambda):
            return tree
        streams = Scalar(tree, place).streams
        if len(streams) == 1 and streams != {RESULT_TIME.stream} and _is_value(tree):
            return self._lift_whole(tree, Scalar(tree, place))
        if not streams:
            return tree
        return rebuild(tree, lambda child: self._lift(child, place))

    def _lift_whole(self, tree: exp.Expr, scalar: Scalar) -> exp.Expr:
        """An expression over one stream, as a column if only Spark can compute it."""
        try:
            self.of_subset(scalar)
            return tree
        except (NotInSubsetError, SqlTypeError) as error:
            if isinstance(error, SqlTypeError):
                try:
                    self._of_engine(scalar)
                except SqlError:
                    return tree
            stream = next(iter(scalar.streams))
            return column(ComputedRef(stream, spell_own(tree), tree))

    def of_subset(self, scalar: Scalar) -> pa.DataType:
        """The type of an expression that is evaluated here; raises an error if it cannot be."""
        try:
            return self._of_expression(scalar)
        except UnavailableError as error:
            hint = error.hint or ELSEWHERE_HINT
            raise NotInSubsetError(error.message, place=scalar.place, hint=hint) from None
        except PredicateError as error:
            raise type_error(
                error, scalar, lambda tree: self._of_expression(Scalar(tree, scalar.place))
            ) from None

    def _of_expression(self, scalar: Scalar) -> pa.DataType:
        expression = compile_over(scalar, scalar.columns, self.catalog.functions, self.catalog.zone)
        return type_of(expression, [self.of_ref(ref) for ref in scalar.columns])

    def _of_engine(self, scalar: Scalar, reason: NotInSubsetError | None = None) -> pa.DataType:
        """The type that the engine knows; without an engine the reason to ask it is raised."""
        try:
            return self._ask_engine(scalar)
        except NoEngineError:
            if reason is None:
                raise
        raise reason

    def _ask_engine(self, scalar: Scalar) -> pa.DataType:
        named = [self._source(name) for name in scalar.streams]
        if len(named) == 1 and named[0].in_windows is not None:
            return self._below_windows(named[0], named[0].in_windows, scalar)
        sources = [source for source in named or self.sources if self._is_known(source, scalar)]
        if not sources:  # Spark does not see the rows of nodes and of groups
            return self.of_subset(scalar)
        return ask_engine(self.catalog, sources[0].relation, scalar)

    def _below_windows(self, source: Source, clause: WindowsClause, scalar: Scalar) -> pa.DataType:
        """The type of an expression over rows in windows, computed below them."""
        below = BelowWindows(source.name, clause)
        if not below.can_compute(scalar.tree):
            return self.of_subset(scalar)
        kind = Types(self.catalog, clause.query.sources).of(
            Scalar(below.inside(scalar.tree), scalar.place)
        )
        return self.of_subset(scalar) if kind is None else kind

    def _is_known(self, source: Source, scalar: Scalar) -> bool:
        """Whether the engine knows a source of the catalog, and all columns that are needed."""
        items = {name for one in source.expansions for name in one.columns}
        if any(isinstance(ref, ColumnRef) and ref.column in items for ref in scalar.columns):
            return False
        name = source.relation.rows_of or source.relation.name
        return source.node is None and name in self.catalog.relations

    def _source(self, name: str) -> Source:
        return next(source for source in self.sources if source.name == name)


def _is_value(tree: exp.Expr) -> bool:
    """Whether a tree is itself a value: not WHEN … THEN, nor a named argument."""
    is_branch = isinstance(tree, exp.If) and isinstance(tree.parent, exp.Case)
    return not is_branch and not isinstance(tree, exp.Kwarg | exp.PropertyEQ | exp.Alias)


def ask_engine(catalog: Catalog, relation: Relation, scalar: Scalar) -> pa.DataType:
    """The type of an expression over one relation's columns, according to the engine."""
    try:
        return catalog.engine.types_of(relation.name, [spell_own(scalar.tree)])[0]
    except NoEngineError:
        raise
    except SqlError as error:
        raise blame_call(error, scalar, catalog.functions) from None


def names_of_types(kinds: Sequence[pa.DataType]) -> str:
    """Types in a list, by their names in Spark."""
    return " and ".join(type_name(kind) for kind in kinds)
