"""The page of all figures and verdicts, from what the experiments have stored."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from nilometer.experiments.report import Report, Verdict

_HEAD = """\
# The papers' experiments, repeated

Written by `nilometer experiments all --page`; do not edit. Each figure of the papers has one
command. A claim is what the paper says about the figure, in our words; it is judged by the
inequality beside it on the numbers measured here, and nothing is tuned until it holds. Claims
marked *ours* are not the papers': they say what the columnar engine does with the same streams.

Times are CPU times of one process. In the figures of TR-010 and STEAM, in ssdbm-transactions and in
captures-joins, algorithms run in turns, three times (`full`) or twice (`quick`), and of each
thousand tuples the least time counts. What the papers do not tell is told under Parameters as ours;
where a second choice was added after the first had not shown a claim, both are shown.
"""


def write_page(reports: Sequence[Report], output: Path, page: Path) -> None:
    """The page, and beside it, in a folder of its name, the figures from the output folder."""
    images = page.with_suffix("")
    images.mkdir(parents=True, exist_ok=True)
    for report in reports:
        if not report.skipped:
            name = f"{report.name}.png"
            shutil.copyfile(output / name, images / name)
    page.write_text(render_page(reports, images.name), encoding="utf-8")


def render_page(reports: Sequence[Report], images: str) -> str:
    """The text of the page; figures are in the folder `images` beside it."""
    parts = [_HEAD, "\n".join(_conditions(reports)), "\n".join(_summary(reports))]
    parts += ["\n".join(_section(report, images)) for report in reports]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _conditions(reports: Sequence[Report]) -> Iterator[str]:
    """Under which conditions all was measured; runs that differ are told apart."""
    for profile, cores, python in sorted({(r.profile, r.cores, r.python) for r in reports}):
        yield f"Measured with profile `{profile}` on {cores} cores with Python {python}."
    measured = sum(not report.skipped for report in reports)
    claims = sum(len(report.claims) for report in reports)
    held = sum(report.held for report in reports)
    minutes = sum(report.seconds for report in reports) / 60
    yield (
        f"{measured} experiments in {minutes:.0f} minutes; of {claims} claims {held} held, "
        f"{claims - held} did not."
    )


def _summary(reports: Sequence[Report]) -> Iterator[str]:
    yield "| experiment | paper | figure | shows | claims held | seconds |"
    yield "|---|---|---|---|---|---|"
    for one in reports:
        held = "skipped" if one.skipped else f"{one.held} of {len(one.claims)}"
        yield (
            f"| [{one.name}](#{one.name}) | {one.paper} | {one.figure} | {_cell(one.title)} "
            f"| {held} | {one.seconds:.0f} |"
        )


def _section(report: Report, images: str) -> Iterator[str]:
    yield f"## {report.name}\n"
    yield f"{report.paper}, {report.figure}: {report.title}.\n"
    yield f"Parameters: {report.parameters}\n"
    flag = "" if report.profile == "full" else f" --{report.profile}"
    yield f"```\nnilometer experiments run {report.name}{flag}\n```\n"
    if report.skipped:
        yield f"Skipped: {report.skipped}."
        return
    yield f"![{report.title}]({images}/{report.name}.png)\n"
    yield "| claim | judged by | verdict | figures |"
    yield "|---|---|---|---|"
    for claim in report.claims:
        yield _line(claim)


def _line(claim: Verdict) -> str:
    verdict = "held" if claim.holds else "**did not hold**"
    reason = f" Why: {claim.reason}" if claim.reason else ""
    cells = (claim.text, claim.inequality, verdict, claim.figures + reason)
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
