"""Dashboards: what is valid, what the catalog keeps, and the routes that change them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import ChangedError, InputError, NotFoundError
from nilometer.model.dashboard import (
    MOST_PANELS,
    Combine,
    Dashboard,
    Panel,
    PanelKind,
    Source,
    SourceKind,
)
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sql.ddl.nodes import ObjectKind
from tests.served import Served, served

PANEL: dict[str, Any] = {
    "title": "Wärme",
    "kind": "line",
    "query": "mean",
    "y": ["t"],
    "series": "k",
    "width": 8,
}
BODY = {"title": "Plant", "panels": [PANEL]}


@st.composite
def panels(draw: st.DrawFn) -> Panel:
    text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
    name = text.filter(str.strip)
    kind = draw(st.sampled_from(PanelKind))
    return Panel(
        draw(name),
        kind,
        Source(draw(st.sampled_from(SourceKind)), draw(name)),
        draw(name if kind is PanelKind.MAP else st.none() | name),
        tuple(draw(st.lists(name, min_size=1, max_size=1))),
        draw(name if kind is PanelKind.HEAT else st.none() | name),
        draw(st.none() | name),
        draw(st.sampled_from(Combine)),
        draw(text),
        draw(st.integers(1, 12)),
    )


@given(st.lists(panels(), max_size=4))
def test_what_is_exported_is_imported(drawn: list[Panel]) -> None:
    dashboard = Dashboard("plant", "Plant", tuple(drawn))
    assert Dashboard.from_text(json.dumps(dashboard.to_json())) == dashboard
    assert Dashboard.from_json(dashboard.to_json(), "other").name == "other"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "pie"}, "the kind of panel 1 is not known"),
        ({"kind": None}, "the kind of panel 1 is not known"),
        ({"query": None}, "panel 1 needs one source"),
        ({"stream": "S"}, "panel 1 needs one source"),
        ({"query": " "}, "a panel needs a source"),
        ({"title": 3}, "panel 1 needs a text for title"),
        ({"title": " "}, "a panel needs a title"),
        ({"y": []}, "a panel of the kind line needs a column of numbers"),
        ({"y": [3]}, "y of panel 1 is not a list of columns"),
        ({"y": [" "]}, "the name of a column is empty"),
        ({"colour": "red"}, "panel 1 has no field 'colour'"),
        ({"width": 13}, "the width of a panel is 1 to 12 columns"),
        ({"width": True}, "width of panel 1 is not a whole number"),
        ({"combine": "most"}, "combine of panel 1 is not known"),
        ({"kind": "map"}, "a map needs a column for x and one for y"),
        ({"kind": "heat map", "series": None}, "a heat map needs a column for its rows"),
        ({"query": None, "select": "x" * 20_001}, "the source of a panel is too long"),
        ({"title": "a\0"}, "the title of a panel is not valid text"),
    ],
)
def test_what_is_no_panel_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Dashboard.from_json({"title": "T", "panels": [PANEL | change]}, "t")
    assert caught.value.message == message


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"title": "a"}', "[" * 100_000, '{"name": 1}'])
def test_what_is_no_dashboard_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Dashboard.from_text(text)


@pytest.mark.parametrize("name", ["", "a/b", "..", "ä", "a b", "x" * 61, "-a"])
def test_names_fit_into_addresses(name: str) -> None:
    with pytest.raises(InputError, match="is part of its URL"):
        Dashboard(name, "T")


def test_the_catalog_keeps_them(catalog_url: str) -> None:
    given = Dashboard.from_json(BODY, "Plant")
    with SensorCatalog.open(catalog_url, clock=lambda: 7) as catalog:
        before = catalog.generation()
        made = catalog.put_dashboard(given, expected=0)
        assert (made.version, made.created, made.panels) == (1, 7, given.panels)
        with pytest.raises(ChangedError, match="dashboard plant already exists"):
            catalog.put_dashboard(Dashboard("plant", "x"), expected=0)
        again = catalog.put_dashboard(Dashboard("plant", "New"), expected=1)
        assert (again.name, again.version, again.panels) == ("Plant", 2, ())
        with pytest.raises(ChangedError, match="has changed the dashboard plant meanwhile"):
            catalog.put_dashboard(Dashboard("plant", "x"), expected=1)
        assert catalog.put_dashboard(given).version == 3
        assert catalog.generation() == before
    with SensorCatalog.open(catalog_url) as catalog:
        assert [one.title for one in catalog.dashboards()] == ["Plant"]
        assert catalog.dashboard("PLANT").panels == given.panels
        catalog.remove_dashboard("plant")
        with pytest.raises(NotFoundError, match="there is no dashboard plant"):
            catalog.dashboard("plant")
        with pytest.raises(ChangedError, match="was deleted meanwhile"):
            catalog.put_dashboard(given, expected=3)


def test_panels_follow_what_they_show_to_its_new_name(catalog_url: str) -> None:
    select = {key: one for key, one in PANEL.items() if key != "query"}
    texts = (
        "SELECT mean.t, x.k FROM mean JOIN `Mean` AS x USING (k) WHERE _time > :start",
        "SELECT t FROM other WHERE k IN (SELECT k FROM MEAN FOR SYSTEM_TIME AS OF :end)",
        "WITH mean AS (SELECT 1 AS t) SELECT t FROM mean",
        "SELECT t, 'mean' AS mean FROM other",
        "this is no SELECT",
    )
    wanted = (
        "SELECT mean.t, x.k FROM `it``s` AS `mean` JOIN `it``s` AS x USING (k) "
        "WHERE _time > :start",
        "SELECT t FROM other WHERE k IN (SELECT k FROM `it``s` FOR SYSTEM_TIME AS OF :end)",
        *texts[2:],
    )
    others = [{**select, "select": text} for text in texts]
    given = {"title": "Plant", "panels": [PANEL, {**select, "stream": "s"}, *others]}
    with SensorCatalog.open(catalog_url, clock=lambda: 7) as catalog:
        catalog.create_query("Mean", "SELECT t, k FROM s", "append")
        catalog.put_dashboard(Dashboard.from_json(given, "plant"))
        catalog.put_dashboard(Dashboard.from_json({"title": "Other", "panels": []}, "other"))
        catalog.rename(ObjectKind.QUERY, "mean", "it`s")
        dashboard = catalog.dashboard("plant")
        assert [one.source.text for one in dashboard.panels] == ["it`s", "s", *wanted]
        assert (dashboard.version, catalog.dashboard("other").version) == (2, 1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as server:
        yield server


def test_routes_list_put_get_and_delete(server: Served) -> None:
    assert server.ask("GET", "/dashboards", "read").json() == []
    made = server.ask("PUT", "/dashboards/plant", "write", json=BODY)
    assert (made.status_code, made.json()["version"]) == (200, 1)
    dashboard = server.ask("GET", "/dashboards/Plant", "read").json()
    assert dashboard["panels"][0] | PANEL == dashboard["panels"][0]
    assert [one["panels"] for one in server.ask("GET", "/dashboards", "read").json()] == [1]
    export = {key: dashboard[key] for key in ("name", "title", "panels")}
    again = server.ask("PUT", "/dashboards/copy", "write", json=export)
    assert again.json()["error"]["message"] == "the name in the body differs from that in the URL"
    again = server.ask("PUT", "/dashboards/plant", "write", json=export | {"version": 1})
    assert (again.status_code, again.json()["version"]) == (200, 2)
    late = server.ask("PUT", "/dashboards/plant", "write", json=export | {"version": 1})
    assert (late.status_code, late.json()["error"]["kind"]) == (409, "ChangedError")
    assert server.ask("DELETE", "/dashboards/plant", "write").status_code == 204
    assert server.ask("GET", "/dashboards/plant", "read").status_code == 404
    assert server.ask("DELETE", "/dashboards/plant", "write").status_code == 404


def test_who_only_reads_changes_nothing(server: Served) -> None:
    assert server.ask("PUT", "/dashboards/plant", "write", json=BODY).status_code == 200
    for scope, status in (("read", 403), (None, 401)):
        for method, body in (("PUT", {"json": BODY}), ("DELETE", {})):
            assert server.ask(method, "/dashboards/plant", scope, **body).status_code == status
    assert server.ask("GET", "/dashboards/plant", None).status_code == 401
    assert server.ask("GET", "/dashboards/plant", "read").json()["version"] == 1


def test_routes_say_what_is_wrong(server: Served) -> None:
    bad = {"title": "T", "panels": [PANEL | {"y": []}]}
    answer = server.ask("PUT", "/dashboards/t", json=bad)
    assert (answer.status_code, answer.json()["error"]["hint"]) == (
        400,
        "give y, or combine rows by counting them",
    )
    many = {"title": "T", "panels": [PANEL] * (MOST_PANELS + 1)}
    assert server.ask("PUT", "/dashboards/t", json=many).status_code == 422
    assert server.ask("PUT", "/dashboards/a b", json=BODY).status_code == 400
