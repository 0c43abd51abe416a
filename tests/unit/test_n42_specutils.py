"""Files that are written in many ways are read as SpecUtils reads them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer_papers.idhm.n42 import read_n42
from tests.n42_files import Measured, Ways, text_2006, text_2012

SpecUtils = pytest.importorskip(
    "SpecUtils", reason="SandiaSpecUtils is not installed: it has no wheel for this platform"
)

EPOCH = datetime(1970, 1, 1)
COUNTS = (
    st.integers(0, 3)
    | st.just(0)
    | st.integers(0, 2**24)
    | st.integers(1, 999).map(lambda n: n / 8)
)
DURATIONS = st.one_of(
    st.integers(1, 10**7).map(lambda ms: f"PT{ms / 1000}S"),
    st.tuples(*[st.integers(1, 59)] * 3).map(lambda t: f"PT{t[0]}H{t[1]}M{t[2]}.25S"),
    st.integers(1, 59).map(lambda m: f"PT{m}M"),
)
POLYNOMIALS = st.tuples(
    st.integers(-50, 50),
    st.integers(5, 120).map(lambda n: n / 10),
    st.sampled_from([0, 1e-3, 5e-4]),
)
WAYS = st.builds(
    Ways,
    separator=st.sampled_from([" ", ",", ", ", "\n", "  \t"]),
    **dict.fromkeys(
        ["namespace", "counted_zeroes", "by_reference", "calibrations_last", "in_detector_data"],
        st.booleans(),
    ),
)


@st.composite
def measured(draw: st.DrawFn, boundaries: bool) -> Measured:
    counts = draw(st.lists(COUNTS, min_size=8, max_size=80))
    energies: tuple[float, ...] = draw(POLYNOMIALS)
    are_boundaries = boundaries and draw(st.booleans())
    if are_boundaries:
        extra = draw(st.integers(0, 1))
        widths = st.lists(
            st.integers(4, 40), min_size=len(counts) + extra, max_size=len(counts) + extra
        )
        energies = tuple(accumulate(width / 4 for width in draw(widths)))
    return Measured(
        tuple(counts),
        energies,
        are_boundaries,
        draw(st.sampled_from(["Aa1", "Ba2", "Gamma 3"])),
        draw(st.sampled_from(["Foreground", "Background", "Calibration"])),
        live=draw(DURATIONS),
    )


def files(boundaries: bool) -> st.SearchStrategy[list[Measured]]:
    """SpecUtils sorts by time: each spectrum has one of its own."""
    first = datetime(2026, 1, 2, 3, 4, 5)
    return st.lists(measured(boundaries), min_size=1, max_size=4).map(
        lambda all_: [
            replace(one, start=first + timedelta(hours=n, milliseconds=25))
            for n, one in enumerate(all_)
        ]
    )


def check(folder: Path, text: str, written: list[Measured]) -> None:
    path = folder / "written.n42"
    path.write_text(text)
    file = SpecUtils.SpecFile()
    file.loadFile(str(path), SpecUtils.ParserType.N42_2012)
    theirs = file.measurements()
    ours = read_n42(path)
    assert len(ours) == len(theirs) == len(written)
    for one, other, source in zip(ours, theirs, written, strict=True):
        assert one.detector == other.detectorName() == source.detector
        assert one.started == (other.startTime() - EPOCH) // timedelta(microseconds=1)
        assert one.live == pytest.approx(other.liveTime(), rel=1e-6)
        assert one.counts.tolist() == list(other.gammaCounts())
        assert one.edges * 1000 == pytest.approx(np.array(other.channelEnergies()), abs=1e-3)


@given(files(boundaries=True), WAYS)
def test_the_form_of_2012(
    tmp_path_factory: pytest.TempPathFactory, written: list[Measured], ways: Ways
) -> None:
    check(tmp_path_factory.getbasetemp(), text_2012(written, ways), written)


@given(files(boundaries=False), WAYS)
def test_the_form_of_2006(
    tmp_path_factory: pytest.TempPathFactory, written: list[Measured], ways: Ways
) -> None:
    check(tmp_path_factory.getbasetemp(), text_2006(written, ways), written)
