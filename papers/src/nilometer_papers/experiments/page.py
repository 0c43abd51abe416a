"""The page of all figures and verdicts, generated from what the experiments have stored."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from nilometer_papers.experiments.refutations import RefutationKind, refutation_of
from nilometer_papers.experiments.report import Report, Verdict

_TITLE = "# The papers' experiments, repeated"
_FULL_TITLE = "# The papers' experiments with the papers' parameters"
_HEAD = """\
Written by `nilometer experiments --page`; do not edit. Each figure of the papers has one
command. A claim is what the paper says about the figure, in our words; it is judged by the
inequality beside it on the numbers measured here, and nothing is tuned until it holds. Claims
marked *ours* are not the papers': most say what the columnar engine does with the same streams,
others judge by CPU times what a paper says of response times, or what we asked in addition. Those
marked *target* say what was wanted of an application that a paper describes without figures; its
setting was chosen with them in mind. Where several seeds were tried, a claim holds if it does with
each of them, and curves are means, with a band from the least to the most.

A claim is counted once. Where two papers say the same of the same algorithms and streams, or one
says it of several figures, the first is counted; where we tried a second choice of parameters, our
first choice is. The others are in their sections, marked *not counted again*.

A claim of a paper that did not hold is either *refuted*, for a reason that is in the algorithms,
and then it is said what would have to be true for the paper to be right; or it *depends on
parameters*, and then it is said where it was measured to hold; or it is *open*, and what is
supposed about it was not measured.
"""

_HOW = """\
## How it was measured

Times are CPU times of one process. All algorithms of a figure get the same tuples, and a figure is
drawn only if all give the same results. In the figures of TR-010 and STEAM, in ssdbm-transactions
and in captures-joins, algorithms run in turns, three times (`full`) or twice (`quick`), and of each
thousand tuples the least time counts. What an algorithm still holds back when the streams end is
checked, but not timed: at most the tuples of a window.

The columnar engine reads and writes columns, so tuples become columns before the clock starts, and
results stay columns. It takes micro-batches of 1000 tuples where nothing else is told. It makes no
comparisons one by one: where they are counted instead of times, it has no curve.

What the papers do not tell is told under Parameters as ours; where a second choice was added after
the first had not shown a claim, both are shown. A reason is given only for what does not hold, and
its numbers were counted once, apart from the run that is shown.

Experiments are run one by one, not all on the same day, and some while the machine had other work:
each section is of one run, and times of different sections cannot be compared with each other.
"""

_UNSTEADY = "unsteady"
_KINDS = {
    _UNSTEADY: "Held with some of the seeds only",
    RefutationKind.REFUTED.value: "Refuted: for a reason that is in the algorithms",
    RefutationKind.DEPENDS.value: "Depends on parameters: "
    "measured to hold for some, told in its section",
    RefutationKind.OPEN.value: "Open: did not hold here, and where it would was not measured",
    "did not hold": "Did not hold, and nobody has looked into it",
    "ours": "Not the papers', but ours",
}

_PROFILES = {
    "full": "the papers' parameters",
    "quick": "less than a minute for most: what that changes is told under Parameters",
    "smoke": "a few seconds for each: it shows that all runs, its verdicts mean nothing",
}


def write_page(reports: Sequence[Report], output: Path, page: Path) -> None:
    """Write the page, and the figures from the output folder to a folder of its name beside it."""
    images = page.with_suffix("")
    images.mkdir(parents=True, exist_ok=True)
    for report in reports:
        if not report.skipped and not images.samefile(output):
            name = f"{report.name}.png"
            shutil.copyfile(output / name, images / name)
    page.write_text(render_page(reports, images.name), encoding="utf-8")


def render_page(reports: Sequence[Report], images: str) -> str:
    """The text of the page; figures are in the folder `images` beside it."""
    is_full = any(report.profile == "full" for report in reports)
    parts = [
        _FULL_TITLE if is_full else _TITLE,
        _HEAD,
        "\n".join(_conditions(reports)),
        "\n".join(_summary(reports)),
    ]
    parts += ["\n".join(part) for part in (_refuted(reports), _batching(reports)) if part]
    parts += [_HOW, *("\n".join(_section(report, images)) for report in reports)]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _conditions(reports: Sequence[Report]) -> Iterator[str]:
    """The conditions of the measurements; runs that differ are listed separately."""
    done = [report for report in reports if not report.skipped]
    for profile, cores, python in sorted({(r.profile, r.cores, r.python) for r in done}):
        yield f"Measured with profile `{profile}` ({_PROFILES[profile]})"
        yield f"on {cores} cores with Python {python}."
    measured = len(done)
    minutes = sum(report.seconds for report in reports) / 60
    claims = [claim for report in reports for claim in report.counted]
    theirs = [one for one in claims if not (one.ours or one.target)]
    ours, targets = ([one for one in claims if one.ours], [one for one in claims if one.target])
    yield (
        f"{measured} experiments in {minutes:.0f} minutes: of the papers' claims {_held(theirs)} "
        f"held, of ours {_held(ours)}, of targets {_held(targets)}."
    )


def _held(claims: Sequence[Verdict]) -> str:
    return f"{sum(one.holds for one in claims)} of {len(claims)}"


def _summary(reports: Sequence[Report]) -> Iterator[str]:
    yield "| experiment | shows | claims held | seeds | seconds |"
    yield "|---|---|---|---|---|"
    for one in reports:
        shows = f"{one.paper}, {one.figure}: {_cell(one.title)}"
        if one.skipped:
            yield f"| {_link(one)} | {shows} | skipped: {_cell(one.skipped)} | | |"
        else:
            held = _held(one.counted)
            yield f"| {_link(one)} | {shows} | {held} | {one.seeds} | {one.seconds:.0f} |"


def _refuted(reports: Sequence[Report]) -> list[str]:
    """All that did not hold, in one place: the reasons are in the sections."""
    lines = []
    for kind, title in _KINDS.items():
        entries = [
            f"- {_link(report)}: {claim.text}"
            for report in reports
            for claim in report.counted
            if not claim.holds and _kind(report, claim) == kind
        ]
        lines += [f"**{title}**\n", *entries, ""] if entries else []
    return ["## What did not hold\n", *lines] if lines else []


def _kind(report: Report, claim: Verdict) -> str:
    """Whether a claim that did not hold is refuted, depends on parameters, or is not a paper's."""
    if claim.ours or claim.target:
        return "ours"
    refutation = refutation_of(report.name, claim.text)
    if refutation is not None:
        return refutation.kind
    return _UNSTEADY if claim.held else "did not hold"


def _batching(reports: Sequence[Report]) -> list[str]:
    """The columnar engine's gains over the papers' algorithms, in one place."""
    lines = [
        f"| {_link(report)} | {_cell(claim.figures)} |"
        for report in reports
        for claim in report.claims
        if claim.ours and "columnar" in claim.text
    ]
    head = ["## What the columnar engine gains\n", "| experiment | measured |", "|---|---|"]
    return [*head, *lines] if lines else []


def _section(report: Report, images: str) -> Iterator[str]:
    yield f"## {report.name}\n"
    yield f"{report.paper}, {report.figure}: {report.title}.\n"
    flag = "" if report.profile == "full" else f" --{report.profile}"
    flag += "" if report.seeds == 1 else f" --seeds {report.seeds}"
    yield f"```\nnilometer experiments run {report.name}{flag}\n```\n"
    if report.skipped:
        yield f"Skipped: {report.skipped}.\n"
    else:
        yield f"![{report.title}]({images}/{report.name}.png)\n"
        for claim in report.claims:
            yield from _lines(report, claim)
        yield ""
    yield f"Parameters: {report.parameters}"


def _lines(report: Report, claim: Verdict) -> Iterator[str]:
    """A claim as an item of a list: cells of a table would be too narrow for it."""
    kind = _kind(report, claim)
    verdict = "held" if claim.holds else "did not hold" if kind in ("ours", _UNSTEADY) else kind
    if not claim.holds and claim.held:
        verdict += f", held with {claim.held} of {claim.tried} seeds"
    if claim.same_as:
        verdict += ", not counted again"
    yield f"- **{verdict}**: {claim.text}"
    yield f"  - judged by: {claim.inequality}"
    yield f"  - measured: {claim.figures}"
    if claim.same_as:
        other, _, text = claim.same_as.partition(": ")
        yield f"  - repeats [{other}](#{other}): {text}"
    if claim.reason:
        yield f"  - why: {claim.reason}"
    if not claim.holds and (refutation := refutation_of(report.name, claim.text)) is not None:
        yield f"  - {refutation.label}: {refutation.explanation}"
        if refutation.test:
            yield f"  - tested by: `tests/unit/{refutation.test}`"


def _link(report: Report) -> str:
    return f"[{report.name}](#{report.name})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
