"""Generated statements with MATCH_RECOGNIZE: their text, and what a naive matcher makes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.naive_match import NaiveMatcher, Part, Path, Row, Value

SECOND = 1_000_000
NAMES = ("A", "B", "C", "D")


@dataclass(frozen=True)
class MatchCase:
    """A statement, and what it means."""

    sql: str
    matcher: NaiveMatcher
    measures: list[Callable[[Path, Path, Sequence[Row], int], Any]]
    """Of the rows so far: all rows of the match, those of the partition and its number."""
    all_rows: bool
    partitioned: bool

    def answer(self, rows: Sequence[Row], ended: bool) -> Counter[tuple[Any, ...]]:
        """The results, with their times."""
        answer: Counter[tuple[Any, ...]] = Counter()
        ordered = sorted(rows, key=_order)
        keys = {row["k"] for row in rows} if self.partitioned else {0}
        for key in keys:
            mine = [row for row in ordered if not self.partitioned or row["k"] == key]
            for number, (path, known_at) in enumerate(self.matcher.matches(mine, ended), start=1):
                for until in range(1, len(path) + 1) if self.all_rows else [len(path)]:
                    now = path[:until]
                    values = [one(now, path, mine, number) for one in self.measures]
                    row = mine[now[-1][1]]
                    shown = [row["k"]] if self.partitioned else []
                    rest = []
                    if self.all_rows:
                        shown.append(row["t"])
                        rest = [row["v"], row["s"]]
                        rest = rest if self.partitioned else [row["k"], *rest]
                    answer[(*shown, *values, *rest, known_at)] += 1
        return answer


def _order(row: Row) -> tuple[Any, ...]:
    return row["t"], *((row[c] is not None, row[c] or 0) for c in ("k", "v")), row["s"] or ""


def generate(rng: Random) -> MatchCase:
    """A statement over S(ts, k, v, s)."""
    names = NAMES[: rng.randint(1, 4)]
    bounded = rng.random() < 0.3
    pattern = _pattern(rng, names, 2, bounded)
    while _least(pattern) == 0:
        pattern = ("all", (("var", rng.choice(names)), pattern))
    if not bounded and rng.random() < 0.25:
        absent = rng.choice([*names, "E"])
        names = tuple(dict.fromkeys((*names, absent)))
        pattern = ("all", (pattern, ("not", absent)))
    used = tuple(dict.fromkeys(_names(pattern)))
    conditions: dict[str, Value] = {}
    define = []
    uses_next = rng.random() < 0.1
    history = rng.random() < 0.5
    for name in used:
        if rng.random() < 0.2:
            conditions[name] = lambda path, rows: True
            continue
        text, conditions[name] = _condition(rng, name, used, history, uses_next)
        define.append(f"{name} AS {text}")
    skip, skipped = _skip(rng, used)
    all_rows = rng.random() < 0.3
    measures = [_measure(rng, used, all_rows) for _ in range(rng.randint(1, 4))]
    partitioned = rng.random() < 0.8
    within = None if bounded and rng.random() < 0.5 else rng.choice([0, 1, 2, 5]) * SECOND
    parts = [
        "PARTITION BY k" if partitioned else "",
        "ORDER BY ts",
        "MEASURES " + ", ".join(f"{text} AS m{n}" for n, (text, _) in enumerate(measures)),
        "ALL ROWS PER MATCH" if all_rows else rng.choice(["", "ONE ROW PER MATCH"]),
        skip,
        f"PATTERN ({show(pattern)})",
        "" if within is None else f"WITHIN INTERVAL '{within // SECOND}' SECONDS",
        "DEFINE " + ", ".join(define) if define else "",
    ]
    counts = any("MATCH_NUMBER" in text for text, _ in measures)
    matcher = NaiveMatcher(
        pattern,
        conditions,
        within,
        skipped,
        skipped == "next" and not counts,
        1 if any("NEXT(" in one for one in define) else 0,
    )
    return MatchCase(
        f"SELECT * FROM S MATCH_RECOGNIZE ({' '.join(filter(None, parts))}) AS m",
        matcher,
        [one for _, one in measures],
        all_rows,
        partitioned,
    )


def _skip(rng: Random, names: Sequence[str]) -> tuple[str, str]:
    name = rng.choice(names)
    return rng.choice(
        [
            ("", "past"),
            ("AFTER MATCH SKIP PAST LAST ROW", "past"),
            ("AFTER MATCH SKIP TO NEXT ROW", "next"),
            (f"AFTER MATCH SKIP TO FIRST {name}", f"first {name}"),
            (f"AFTER MATCH SKIP TO LAST {name}", f"last {name}"),
        ]
    )


def _pattern(rng: Random, names: Sequence[str], depth: int, bounded: bool) -> Part:
    kind = rng.choice(["var", "all", "all", "any", "times"]) if depth else "var"
    if kind == "var":
        return ("var", rng.choice(names))
    if kind == "times":
        least = rng.randint(0, 2)
        most = least + rng.randint(0, 2) if bounded or rng.random() < 0.4 else None
        inner = _pattern(rng, names, depth - 1, bounded)
        return (
            "times",
            inner,
            least,
            max(most, 1) if most is not None else None,
            rng.random() < 0.6,
        )
    parts = [_pattern(rng, names, depth - 1, bounded) for _ in range(rng.randint(2, 3))]
    return (kind, tuple(parts))


def _least(part: Part) -> int:
    match part:
        case ("var", _):
            return 1
        case ("times", inner, least, _, _):
            return least * _least(inner)
        case ("all", parts):
            return sum(map(_least, parts))
        case ("any", parts):
            return min(map(_least, parts))
    return 0


def _names(part: Part) -> list[str]:
    match part:
        case ("var", name) | ("not", name):
            return [name]
        case ("times", inner, *_):
            return _names(inner)
    return [name for one in part[1] for name in _names(one)]


def show(part: Part) -> str:
    match part:
        case ("var", name):
            return str(name)
        case ("not", name):
            return f"NOT {name}"
        case ("all", parts):
            last = parts[-1]
            if last[0] == "not":
                return f"({show(('all', parts[:-1]))}) {show(last)}"
            return " ".join(f"({show(one)})" if one[0] == "any" else show(one) for one in parts)
        case ("any", parts):
            return "(" + " | ".join(map(show, parts)) + ")"
    _, inner, least, most, greedy = part
    count = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get(
        (least, most), f"{{{least},{'' if most is None else most}}}"
    )
    return f"({show(inner)}){count}{'' if greedy else '?'}"


def _of(path: Path, names: Sequence[str] | None) -> list[int]:
    return [place for name, place in path if names is None or name in names]


def _column(name: str | None, last: bool, offset: int, steps: int, what: str = "v") -> Value:
    def value(path: Path, rows: Sequence[Row]) -> Any:
        places = _of(path, None if name is None else [name])
        if offset >= len(places):
            return None
        place = (places[-1 - offset] if last else places[offset]) + steps
        return rows[place][what] if 0 <= place < len(rows) else None

    return value


def _aggregate(function: str, name: str | None) -> Value:
    def value(path: Path, rows: Sequence[Row]) -> Any:
        values = [rows[place]["v"] for place in _of(path, None if name is None else [name])]
        known = [one for one in values if one is not None]
        if function == "COUNT":
            return len(known)
        if not known:
            return None
        if function == "AVG":
            return sum(known) / len(known)
        return {"SUM": sum, "MIN": min, "MAX": max}[function](known)

    return value


def _term(rng: Random, names: Sequence[str]) -> tuple[str, Value]:
    """An expression that reads the match so far."""
    name = rng.choice([None, *names])
    written = "v" if name is None else f"{name}.v"
    number = rng.randint(0, 2)
    kind = rng.choice(["column", "first", "last", "prev", "nested", "aggregate", "count"])
    if kind == "column":
        return written, _column(name, True, 0, 0)
    if kind in ("first", "last"):
        asked = f", {number}" if number or rng.random() < 0.5 else ""
        return f"{kind.upper()}({written}{asked})", _column(name, kind == "last", number, 0)
    if kind == "prev":
        return f"PREV({written}, {number})", _column(name, True, 0, -number)
    if kind == "nested":
        return f"PREV(FIRST({written}, {number}), 1)", _column(name, False, number, -1)
    if kind == "count":
        star = "*" if name is None else f"{name}.*"
        return f"COUNT({star})", lambda path, rows: len(_of(path, None if name is None else [name]))
    function = rng.choice(["COUNT", "SUM", "AVG", "MIN", "MAX"])
    return f"{function}({written})", _aggregate(function, name)


def _compare(operator: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    return {"<": left < right, ">": left > right, "<=": left <= right, "=": left == right}[operator]


def _comparison(
    rng: Random, name: str, names: Sequence[str], history: bool, uses_next: bool
) -> tuple[str, Value]:
    own = rng.choice(["v", f"{name}.v"])
    current = _column(None, True, 0, 0)
    if rng.random() < 0.2:
        letter = rng.choice(["a", "b"])
        text = f"{rng.choice(['s', f'{name}.s'])} = '{letter}'"
        return text, lambda path, rows: _compare("=", rows[path[-1][1]]["s"], letter)
    operator = rng.choice(["<", ">", "<=", "="])
    if uses_next and rng.random() < 0.5:
        other, value = f"NEXT({own})", _column(None, True, 0, 1)
    elif history and rng.random() < 0.6:
        other, value = _term(rng, names)
    elif rng.random() < 0.5:
        number = rng.choice([1, 1, 2])
        other, value = f"PREV({own}, {number})", _column(None, True, 0, -number)
    else:
        limit = rng.choice([0.5, 2.0, 3.25, 5.0])
        other, value = str(limit), lambda path, rows: limit
    return (
        f"{own} {operator} {other}",
        lambda path, rows: _compare(operator, current(path, rows), value(path, rows)),
    )


def _condition(
    rng: Random, name: str, names: Sequence[str], history: bool, uses_next: bool
) -> tuple[str, Value]:
    text, first = _comparison(rng, name, names, history, uses_next)
    if rng.random() < 0.6:
        return text, first
    other, second = _comparison(rng, name, names, history, uses_next)
    if rng.random() < 0.5:
        return (
            f"{text} AND {other}",
            lambda path, rows: first(path, rows) is True and second(path, rows) is True,
        )
    return (
        f"({text} OR {other})",
        lambda path, rows: first(path, rows) is True or second(path, rows) is True,
    )


def _measure(
    rng: Random, names: Sequence[str], all_rows: bool
) -> tuple[str, Callable[[Path, Path, Sequence[Row], int], Any]]:
    kind = rng.choice(["term", "term", "term", "final", "number", "classifier", "rowtime"])
    if kind == "number":
        return "MATCH_NUMBER()", lambda now, path, rows, number: number
    if kind == "classifier":
        return "CLASSIFIER()", lambda now, path, rows, number: now[-1][0]
    if kind == "rowtime":
        return "MATCH_ROWTIME()", lambda now, path, rows, number: rows[path[-1][1]]["t"]
    text, value = _term(rng, names)
    if kind == "final" and "(" in text:
        return f"FINAL {text}", lambda now, path, rows, number: value(path, rows)
    return text, lambda now, path, rows, number: value(now, rows)


def generate_rows(rng: Random, count: int, keys: int) -> list[Row]:
    """Rows in order of arrival: at most two seconds late."""
    rows = [
        {
            "t": rng.randint(0, max(2, count // keys)) * SECOND // rng.choice([1, 1, 2]),
            "k": rng.randrange(keys),
            "v": rng.choice([None, 0.5, 1.0, 2.0, 3.25, 5.0, 7.5]),
            "s": rng.choice([None, "a", "b"]),
        }
        for _ in range(count)
    ]
    return sorted(rows, key=lambda row: row["t"] // (2 * SECOND))
