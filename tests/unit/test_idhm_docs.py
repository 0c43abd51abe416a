"""docs/idhm.md says of lines, the rule and the queries what the application has."""

from __future__ import annotations

import re
from pathlib import Path

from nilometer_papers.idhm.decision import Limits
from nilometer_papers.idhm.declare import QUERIES, Reach, statements
from nilometer_papers.idhm.elements import ELEMENTS, LINES
from nilometer_papers.idhm.knowledge_rows import KNOWN_BOXES

PAGE = (Path(__file__).parents[2] / "docs" / "idhm.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines()]


def test_the_lines_are_those_of_the_elements() -> None:
    documented = {row[0]: re.findall(r"[\d.]+", row[1]) for row in ROWS if row[0] in ELEMENTS}
    assert set(documented) == set(ELEMENTS)
    for element, energies in documented.items():
        assert [float(one) for one in energies] == [
            line.energy for line in LINES if line.element == element
        ]


def test_the_rule_is_that_of_the_queries() -> None:
    assert f"```sql\n{Limits().sql()}\n```" in PAGE


def test_the_queries_have_the_columns_that_are_documented() -> None:
    documented = {row[0].strip("`"): row[1] for row in ROWS if row[0].strip("`") in QUERIES}
    seen = set()
    for text in statements(Reach(1, None, "secret")):
        if named := re.match(r"CREATE QUERY (\w+) AS\s+SELECT (.*?)\s+FROM ", text, re.DOTALL):
            name, selected = named.groups()
            without_cases = re.sub(r"CASE .*? END", "", selected, flags=re.DOTALL)
            columns = [part.split()[-1] for part in without_cases.split(",")]
            assert f"`{', '.join(columns)}`" in documented[name]
            seen.add(name)
    assert seen == set(QUERIES)


def test_how_much_the_demo_knows() -> None:
    assert f"patterns of {KNOWN_BOXES} known boxes" in PAGE
