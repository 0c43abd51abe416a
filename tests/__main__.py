"""Runs all suites, three at a time: `python -m tests`, or some: `python -m tests spark`.

It reports progress, slow tests and costly ones, shows failures in full, and ends with one line
for each suite. Tests run in a separate process from the one that hands them out: one that crashes
or takes too long is lost alone, and the next ones run in a new process.

If only a few failed, they are rerun when nothing else runs. One that passes then is flaky: it is
listed with its failure, and somebody should find out why, but it does not fail the run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from tests.report_progress import FILE

SUITES: Final = {
    "spark": ("tests/spark",),
    "unit": ("src", "papers/src", "tests/unit"),
    "processes": ("tests/processes",),
    "browser": ("tests/browser",),
}
"""Those in processes start a Spark of their own, or several, and mostly wait for it."""
WORKERS: Final = {"unit": max(1, (os.cpu_count() or 1) - 1)}
"""How many processes run the tests of a suite: one where they share a session or a server, and
one core is left for these."""
AT_ONCE: Final = 3
AGAIN: Final = 5
"""Up to this many failed tests are rerun; if more fail, it is no accident."""
SAY_EVERY: Final = 15.0
SLOW: Final = 20.0
COSTLIEST: Final = 10
FOLDER: Final = Path("build", "tests")


@dataclass
class Suite:
    """One run of pytest, and what is known about it."""

    name: str
    tests: tuple[str, ...]
    process: subprocess.Popen[bytes] | None = None
    collected: int = 0
    outcomes: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    read: int = 0
    began: float = 0.0
    took: float = 0.0

    @property
    def log(self) -> Path:
        return FOLDER / f"{self.name}.log"

    @property
    def events(self) -> Path:
        return FOLDER / f"{self.name}.jsonl"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def is_whole(self) -> bool:
        """Whether it finished, with failures or without: no errors except those of its tests."""
        code = None if self.process is None else self.process.returncode
        return code == 0 or (code == 1 and any(map(self.count, ("failed", "unsteady"))))

    @property
    def is_green(self) -> bool:
        return self.is_whole and not self.count("failed")

    def named(self, outcome: str) -> list[str]:
        return [test for test, result in self.outcomes.items() if result == outcome]

    def count(self, outcome: str) -> int:
        return len(self.named(outcome))

    def start(self) -> None:
        self.events.write_text("")
        workers = str(WORKERS.get(self.name, 1))
        command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "--dist", "worksteal"]
        command += ["-p", "no:cacheprovider", "-p", "tests.processor_time"]
        command += ["-p", "tests.report_progress", "--tb", "short"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, *self.tests],
                stdout=log,
                stderr=log,
                env={**os.environ, FILE: str(self.events)},
            )
        self.began = time.monotonic()

    def update(self) -> Iterable[str]:
        """Read what has happened since; returns what should be reported."""
        ended = not self.is_running
        with self.events.open("rb") as file:
            file.seek(self.read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.read += len(line)
                yield from self._take(json.loads(line))
        if ended and not self.took:
            self.took = time.monotonic() - self.began

    def _take(self, event: dict[str, object]) -> Iterable[str]:
        test = str(event.get("test"))
        match event["event"]:
            case "collected":
                self.collected = int(str(event["tests"]))
            case "began":
                self.running[test] = time.monotonic()
            case "ended":
                self.running.pop(test, None)
                if (took := self.seconds.get(test, 0.0)) > SLOW:
                    yield f"slow: {test} took {took:.0f} s"
            case "ran":
                self.seconds[test] = self.seconds.get(test, 0.0) + float(str(event["seconds"]))
                taken = float(str(event["processor"]))
                self.processor[test] = self.processor.get(test, 0.0) + taken
                outcome = str(event["outcome"])
                if outcome != "passed" or event["when"] == "call":
                    before = self.outcomes.get(test)
                    self.outcomes[test] = "failed" if before == "failed" else outcome
                if outcome == "failed":
                    self.running.pop(test, None)  # a test that ended its process does not say so
                    yield f"FAILED {test}"

    def progress(self) -> str:
        text = f"{self.name} {len(self.outcomes)} of {self.collected or '…'}"
        longest = min(self.running.items(), key=lambda item: item[1], default=None)
        if longest is not None and (past := time.monotonic() - longest[1]) > SLOW / 2:
            text += f" ({longest[0].rsplit('/', 1)[-1]} for {past:.0f} s)"
        return text

    def verdict(self) -> str:
        text = f"{self.name}: {self.count('passed')} passed, {self.count('failed')} failed"
        further = ((self.count(one), one) for one in ("skipped", "unsteady"))
        return ", ".join([text, *(f"{count} {one}" for count, one in further if count)])


def main(names: list[str]) -> int:
    unknown = set(names) - set(SUITES)
    if unknown:
        say(f"there is no suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that everything running is ended
    FOLDER.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    suites = [Suite(name, SUITES[name]) for name in names or SUITES]
    run(suites, began)
    for suite in suites:
        if not suite.is_green:
            say(suite.log.read_text(errors="replace"))
    run_again(suites)
    report_costliest(suites)
    for suite in suites:
        say(f"{suite.name} took {clock(suite.took)}; its output is in {suite.log}")
    for suite in suites:
        say(suite.verdict())
        if not suite.is_whole:
            say(f"{suite.name} ended with an error: see above")
    return 0 if all(suite.is_green for suite in suites) else 1


def run(suites: list[Suite], began: float) -> None:
    """Run the suites; those still running are ended if this process is."""
    try:
        run_to_the_end(suites, began)
    finally:
        for suite in suites:
            if suite.is_running and suite.process is not None:
                kill_all(suite.process.pid)


def kill_all(process: int) -> None:
    """End a process and everything it has started, also in sessions of their own."""
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(process)
        for one in (*parent.children(recursive=True), parent):
            with suppress(psutil.NoSuchProcess):
                one.kill()


def run_again(suites: list[Suite]) -> None:
    """Rerun a few failed tests, alone; those that pass are flaky."""
    failed = [test for suite in suites for test in suite.named("failed")]
    if not 0 < len(failed) <= AGAIN or not all(suite.is_whole for suite in suites):
        return
    say(f"{len(failed)} failed; once more, alone:")
    again = Suite("again", tuple(failed))
    run([again], time.monotonic())
    if not again.is_green:
        say(again.log.read_text(errors="replace"))
    for suite in suites:
        for test in suite.named("failed"):
            if again.outcomes.get(test) == "passed":
                suite.outcomes[test] = "unsteady"
                say(f"UNSTEADY {test} failed beside others (see above) and passed alone")


def run_to_the_end(suites: list[Suite], began: float) -> None:
    """Run the suites in order, and report progress; one that cannot be collected ends all."""
    waiting = list(suites)
    said = time.monotonic()
    while waiting or any(suite.is_running for suite in suites):
        while waiting and sum(suite.is_running for suite in suites) < AT_ONCE:
            waiting.pop(0).start()
        time.sleep(0.5)
        started = [suite for suite in suites if suite.process is not None]
        for suite in started:
            for text in suite.update():
                say(f"  {text}")
        if broken := [one for one in started if not one.is_running and not one.collected]:
            say(f"  {broken[0].name} found no tests to run: the others are ended")
            return
        if time.monotonic() - said > SAY_EVERY:
            said = time.monotonic()
            running = [suite.progress() for suite in started if suite.is_running]
            say(f"  {clock(said - began)}  {', '.join(running)}")
    for suite in suites:
        for text in suite.update():
            say(f"  {text}")


def report_costliest(suites: list[Suite]) -> None:
    """Say which tests took most of the processors: what a run takes is decided there."""
    every = [
        (processor, suite.seconds[test], test)
        for suite in suites
        for test, processor in suite.processor.items()
    ]
    say("The costliest tests, by processor time and by the clock:")
    for processor, seconds, test in sorted(every, reverse=True)[:COSTLIEST]:
        say(f"  {processor:5.1f} s  {seconds:5.1f} s  {test}")


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        say("ended before all tests have run")
        code = 130
    raise SystemExit(code)
