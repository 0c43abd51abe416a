"""The outcome of an experiment, as it is stored beside its figure."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nilometer_papers.experiments.experiment import Claim, Experiment, Profile, Row


@dataclass(frozen=True)
class Verdict:
    """A claim, and whether it held."""

    text: str
    inequality: str
    held: int
    """With how many seeds it held,"""
    tried: int
    """of so many."""
    figures: str
    reason: str = ""
    """Why it did not hold, if that is known."""
    same_as: str = ""
    """The counted claim that it repeats, if it repeats one."""

    @property
    def holds(self) -> bool:
        """Whether it held with every seed."""
        return self.held == self.tried

    @property
    def ours(self) -> bool:
        """Whether it is not a paper's claim, but ours."""
        return self.text.startswith("ours: ")

    @property
    def target(self) -> bool:
        """Whether it is not a paper's claim, but a goal for what is built here."""
        return self.text.startswith("target: ")


@dataclass(frozen=True)
class Report:
    """One run of an experiment."""

    name: str
    paper: str
    figure: str
    title: str
    parameters: str
    profile: str
    seconds: float
    claims: tuple[Verdict, ...]
    skipped: str = ""
    """Why nothing was measured; empty if it was."""
    seeds: int = 1
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    python: str = field(default_factory=platform.python_version)

    @property
    def counted(self) -> tuple[Verdict, ...]:
        """The claims without those that repeat another."""
        return tuple(one for one in self.claims if not one.same_as)

    @property
    def held(self) -> int:
        """How many of the counted claims held."""
        return sum(one.holds for one in self.counted)


def make_report(
    experiment: Experiment,
    profile: Profile,
    seconds: float,
    measured: Sequence[Sequence[Row]],
    skipped: str = "",
) -> Report:
    """Judge what was measured with each seed; nothing is judged if it was skipped."""
    claims = () if skipped else tuple(judge(claim, measured) for claim in experiment.claims)
    return Report(
        experiment.name,
        experiment.paper,
        experiment.figure,
        experiment.title,
        experiment.parameters,
        profile.value,
        round(seconds, 1),
        claims,
        skipped,
        max(1, len(measured)),
    )


def judge(claim: Claim, measured: Sequence[Sequence[Row]]) -> Verdict:
    """With how many seeds a claim holds; its reason counts only if it does not with all."""
    outcomes = [claim.check(rows) for rows in measured]
    held = sum(bool(one.holds) for one in outcomes)
    figures = [one.figures for one in outcomes]
    if len(set(figures)) > 1:
        figures = [f"seed {seed}: {text}" for seed, text in enumerate(figures, 1)]
    reason = "" if held == len(outcomes) else claim.reason
    text = "; ".join(dict.fromkeys(figures))
    return Verdict(claim.text, claim.inequality, held, len(outcomes), text, reason, claim.same_as)


def report_path(folder: Path, name: str) -> Path:
    """The path of an experiment's report."""
    return folder / f"{name}.verdicts.json"


def write_report(report: Report, folder: Path) -> None:
    """Store a report for `read_report`."""
    text = json.dumps(asdict(report), indent=2, ensure_ascii=False, allow_nan=False)
    report_path(folder, report.name).write_text(text + "\n", encoding="utf-8")


def read_report(folder: Path, name: str) -> Report | None:
    """The report of the last run, if there was one."""
    path = report_path(folder, name)
    if not path.exists():
        return None
    fields = json.loads(path.read_text(encoding="utf-8"))
    claims = tuple(Verdict(**one) for one in fields.pop("claims"))
    return Report(claims=claims, **fields)
