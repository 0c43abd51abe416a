"""The editor in a real browser: errors are marked, rows arrive, charts move, queries stop."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import NARROW, Visiting

_JOIN = """SELECT A.obj_id, A.ts AS first, B.ts AS second, C.ts AS third, B.speed
FROM   Camera1 A, Camera2 B, Camera3 C
WINDOW (A, B) = 2 SECONDS AND DWINDOW (B, C) = 3 SECONDS
WHERE  A.obj_id = B.obj_id AND B.obj_id = C.obj_id"""


def test_a_query_is_written_corrected_watched_and_stopped(visit: Visiting) -> None:
    at = visit(theme="dark")
    at.open("/")
    at.write(_JOIN.replace("B.speed", "B.sped"))
    expect(at.page.locator(".nm-wrong")).to_have_text("B.sped")
    expect(at.page.locator("#problem")).to_contain_text("line 1, column 64: B has no column sped")
    expect(at.page.locator("#problem")).to_contain_text("did you mean speed?")
    at.photograph("editor-error-dark-1280")

    at.write(_JOIN)
    expect(at.page.locator(".nm-wrong")).to_have_count(0)
    expect(at.page.locator("#problem")).to_be_hidden()
    at.page.keyboard.press("Control+Enter")
    at.wait_for_rows()
    kinds = [one["type"] for one in at.chart()]
    assert kinds == ["lines", "scatter", "scatter", "scatter"]  # matches between three lanes
    first = at.wait_for_points()
    assert at.wait_for_points(after=first) > first
    at.wait_for_more_rows()
    at.photograph("editor-matches-dark-1280")

    at.button("Lines").click()
    moved = at.wait_for_points()
    assert at.wait_for_points(after=moved) > moved
    at.button("Stop").click()
    expect(at.page.locator(".nm-phase")).to_have_text("stopped")
    at.wait_for_rest()


def test_a_newcomer_is_led_to_a_chart_on_a_phone(visit: Visiting) -> None:
    at = visit(size=NARROW, guided=False)
    at.open("/")
    at.photograph("guide-light-390")
    at.page.get_by_role("button", name="Weather").click()
    expect(at.page.locator(".cm-content")).to_contain_text("Weather [RANGE 30 SECONDS]")
    at.button("Run it").click()
    at.wait_for_rows()
    expect(at.page.locator(".nm-table tbody tr")).to_have_count(3)  # the stations, in place
    assert {one["name"] for one in at.chart()} == {"harbour", "hill", "roof"}
    first = at.wait_for_points()
    assert at.wait_for_points(after=first) > first
    at.photograph("answer-light-390")
    at.button("Changes").click()
    expect(at.page.locator(".nm-table th").last).to_have_text("_diff")
    expect(at.page.locator(".nm-table tbody tr").nth(3)).to_be_attached()
    at.button("Done").click()
    expect(at.page.get_by_role("heading", name="Your first query")).to_be_hidden()


def test_names_are_completed(visit: Visiting) -> None:
    at = visit()
    at.open("/")
    at.write("SELECT W.tem FROM Weather W")
    at.page.keyboard.press("Home")
    for _ in range(len("SELECT W.tem")):
        at.page.keyboard.press("ArrowRight")
    at.page.keyboard.press("Control+Space")
    expect(at.page.locator(".cm-tooltip-autocomplete li").first).to_contain_text("temperature")
    at.page.wait_for_timeout(200)  # a choice made at once is taken for an accident
    at.page.keyboard.press("Enter")
    expect(at.page.locator(".cm-content")).to_have_text("SELECT W.temperature FROM Weather W")
    at.write("SELECT * FROM Camer")
    at.page.keyboard.press("Control+Space")
    expect(at.page.locator(".cm-tooltip-autocomplete li")).to_contain_text(
        ["Camera1", "Camera2", "Camera3"]
    )
    at.photograph("completion-light-1280")
    at.page.keyboard.type("a2")  # the word is whole: nothing is left to offer
    expect(at.page.locator(".cm-tooltip-autocomplete")).to_have_count(0)


def test_statements_answer_with_a_sentence_rows_or_a_plan(visit: Visiting) -> None:
    at = visit()
    at.open("/")
    at.write("CREATE TABLE Rooms (name STRING, area DECIMAL(6, 2));")
    at.button("Run").click()
    expect(at.page.locator("#outcome")).to_contain_text("created table Rooms")
    text = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"
    at.write(f"INSERT INTO Rooms VALUES ('{text.replace(chr(39), chr(39) * 2)}', 23.5)")
    at.button("Run").click()
    expect(at.page.locator("#outcome")).to_contain_text("1 row")
    at.write("SELECT * FROM Rooms")
    at.button("Run").click()
    cell = at.page.locator(".nm-table tbody td").first
    expect(cell).to_have_text(text)
    assert at.page.locator(".nm-table img, .nm-table script").count() == 0
    at.write("EXPLAIN " + _JOIN)
    at.button("Run").click()
    expect(at.page.locator("pre.nm-text")).to_contain_text("Camera2")
    assert at.page.title() == "Query · Nilometer"


def test_values_of_streams_are_text_in_tables_and_charts(visit: Visiting) -> None:
    at = visit()
    at.open("/")
    text = "<img src=x onerror=alert(1)>"
    at.write(f"SELECT '{text}' AS name, temperature FROM Weather")
    at.button("Run").click()
    at.wait_for_rows()
    expect(at.page.locator(".nm-table tbody td").first).to_have_text(text)
    at.wait_for_points()
    assert [one["name"] for one in at.chart()] == [text]
    assert at.page.locator(".nm-results img").count() == 0


def test_a_query_is_kept_under_a_name(visit: Visiting) -> None:
    at = visit(scope="write")
    at.open("/")
    at.write("SELECT station, wind FROM Weather WHERE temperature > 0")
    at.button("Run").click()
    at.wait_for_rows()
    at.button("Keep as …").click()
    at.page.get_by_label("Name").fill("Camera1")
    at.button("Keep").click()
    expect(at.page.get_by_role("alert")).to_contain_text("Camera1")
    at.page.get_by_label("Name").fill("Windy")
    at.button("Keep").click()
    expect(at.page.locator("#outcome")).to_contain_text("Windy is kept")
    at.wait_for_rows()
    at.write("DROP QUERY Windy")
    at.button("Run").click()
    expect(at.page.locator("#outcome")).to_contain_text("query Windy dropped")


def test_completions_and_colours_are_those_of_our_sql(visit: Visiting) -> None:
    at = visit()
    at.open("/")
    at.write("SELECT clo")
    at.page.keyboard.press("Control+Space")
    at.page.wait_for_timeout(1000)
    offered = at.page.locator(".cm-tooltip-autocomplete li").all_inner_texts()
    assert not {"clob", "close"} & set(offered)
    at.page.keyboard.press("Escape")
    at.write("SELECT wi")
    at.page.keyboard.press("Control+Space")
    expect(at.page.locator(".cm-tooltip-autocomplete li").first).to_be_visible()
    icons = at.page.locator(".cm-completionIcon")
    assert icons.count() > 0
    assert icons.locator("visible=true").count() == 0  # of which fonts do not have all
    at.page.keyboard.press("Escape")
    at.write("SELECT station FROM Weather [RANGE 30 SECONDS] WHERE station = 'hill' -- up")
    code = at.page.locator(".cm-content")
    expect(code.locator(".keyword").first).to_have_text("SELECT")
    expect(code.locator(".string")).to_have_text("'hill'")
    expect(code.locator(".comment")).to_have_text("-- up")
    painted = "(word) => getComputedStyle(word).color"
    written = code.locator(".keyword").first.evaluate(painted)
    at.page.evaluate("""() => document.querySelector('.nm-main').insertAdjacentHTML(
        'beforeend', '<pre class="nm-text nm-sql"><span class="keyword">SELECT</span></pre>')""")
    assert at.page.locator("pre.nm-sql .keyword").evaluate(painted) == written


def test_nothing_is_wrong_while_somebody_types(visit: Visiting) -> None:
    at = visit()
    at.open("/")
    at.write("SELECT sped FROM Weather")
    problem = at.page.locator("#problem")
    expect(problem).to_contain_text("sped")
    at.page.keyboard.type(" WHERE wind > 5 AND", delay=60)
    expect(problem).to_be_hidden()
    at.write("SELECT station, wi")  # of what, will be said in a moment
    at.page.wait_for_timeout(3000)
    expect(problem).to_be_hidden()


def test_several_statements_each_have_their_outcome(visit: Visiting) -> None:
    at = visit()
    at.open("/")
    at.write(
        "CREATE TABLE Halls (name STRING); INSERT INTO Halls VALUES ('east');\n"
        "SELECT * FROM Halls; SELECT name FROM Nowhere; DROP TABLE Halls"
    )
    at.button("Run").click()
    outcome = at.page.locator("#outcome")
    expect(outcome.get_by_role("alert")).to_contain_text("Nowhere")
    expect(outcome.get_by_role("alert")).to_contain_text(
        "Statements 1 to 3 were run; statement 5 was not."
    )
    expect(outcome).to_contain_text("created table Halls")
    expect(outcome.locator(".nm-table tbody td")).to_have_text("east")
    expect(outcome.locator(".nm-part")).to_have_count(4)
    expect(at.page.locator(".nm-wrong")).to_have_text("Nowhere")
    at.photograph("statements-light-1280", whole=True)
    at.write("DROP TABLE Halls; SELECT station, wind FROM Weather")
    at.button("Run").click()
    expect(outcome).to_contain_text("dropped table Halls")
    at.wait_for_rows()


def test_of_several_statements_none_is_run_that_is_not_allowed(visit: Visiting) -> None:
    at = visit(scope="write")
    at.open("/")
    at.write("CREATE TABLE Attic (name STRING); DROP STREAM Weather")
    at.button("Run").click()
    expect(at.page.locator("#problem")).to_contain_text("this needs the scope admin")
    at.write("SELECT * FROM Attic")
    at.button("Run").click()
    expect(at.page.locator("#problem")).to_contain_text("Attic")
