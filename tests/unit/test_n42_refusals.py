"""Files of the format ANSI N42.42 that are damaged, or made to do harm."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from nilometer.errors import InputError
from nilometer_papers.idhm import n42, n42_xml
from nilometer_papers.idhm.n42 import N42Error, read_n42
from tests.n42_files import Measured, Ways, text_2006, text_2012

TEXTS = pytest.mark.parametrize("text_of", [text_2006, text_2012])
TextOf = Callable[..., str]
COUNTS = "5 0 0 7"


def refuse(folder: Path, text: str, why: str, encoding: str = "utf-8") -> N42Error:
    """Reads a file that is refused for this reason, and names it."""
    path = folder / "other.n42"
    path.write_text(text, encoding=encoding)
    with pytest.raises(N42Error, match=rf"^other\.n42 .*{why}") as caught:
        read_n42(path)
    return caught.value


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entity_bombs_are_refused(tmp_path: Path, encoding: str) -> None:
    text = text_2012([Measured()]).replace("?>", "?>" + BOMB, 1).replace("UTF-8", encoding)
    refuse(tmp_path, text, "declares a document type", encoding)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not well-formed XML"),
        ("counts\n1\n2\n", "is not well-formed XML"),
        ("<RadInstrumentData>", "is not well-formed XML"),
        ('<?xml version="1.0" encoding="nonsense"?><a/>', "is not well-formed XML"),
        ('<?xml version="1.0" encoding="shift_jis"?><a/>', "is not well-formed XML"),
        ("<a>&undeclared;</a>", "is not well-formed XML"),
        ("<html><body>no</body></html>", "is not a file of the format N42.42"),
        ("<RadInstrumentData/>", "has no gamma spectrum"),
        ("<N42InstrumentData/>", "has no gamma spectrum"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, text: str, why: str) -> None:
    refuse(tmp_path, text, why)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_n42(tmp_path / "nowhere.n42")


@TEXTS
def test_a_file_that_is_cut_off(tmp_path: Path, text_of: TextOf) -> None:
    text = text_of([Measured(), Measured()])
    for cut in range(len(text) - len("</N42InstrumentData>"), 0, -37):
        refuse(tmp_path, text[:cut], "is not well-formed XML")


@TEXTS
@pytest.mark.parametrize(
    ("counts", "why", "what"),
    [
        ("5 NaN 0 7", "not a number", "NaN"),
        ("5 inf 0 7", "not a number", "inf"),
        ("5 1_000 0 7", "not a number", "1_000"),
        ("5 0x10 0 7", "not a number", "0x10"),
        ("5 ٣ 0 7", "not a number", "٣"),
        ("5 1-2 0 7", "not a number", "1-2"),
        ("5 " + "9" * 10**6, "not a number", "9" * 40),
        ("5 1e999 7", "too large", None),
        ("5 1e300 7", "negative or too large", None),
        ("5 -1 7", "negative or too large", None),
        ("5,,7", "between two commas", None),
        ("5, \n,7", "between two commas", None),
        ("1 " * (2**17 + 1), "more than 131072 numbers", None),
        ("5 <x/> 7", "elements in the text of ChannelData", None),
        ("5</ChannelData><ChannelData>7", "more than one ChannelData", None),
    ],
)
def test_counts(tmp_path: Path, text_of: TextOf, counts: str, why: str, what: str | None) -> None:
    text = text_of([Measured()]).replace(COUNTS, counts)
    error = refuse(tmp_path, text, f"spectrum, number 1, that cannot be read: .*{why}")
    assert error.detail == what


@TEXTS
@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ("5 0", "a run of zeroes has no length"),
        ("5 0 0 7", "a run of zeroes has no length"),
        ("5 0 1.5 7", "a run of zeroes has no length"),
        ("5 0 1000000000000 7", "more than 131072 channels"),
        ("5 0 131072", "more than 131072 channels"),
        ("5 0 131071 0 131071", "more than 131072 channels"),
    ],
)
def test_counted_zeroes(tmp_path: Path, text_of: TextOf, counts: str, why: str) -> None:
    text = text_of([Measured((1, 2))], Ways(counted_zeroes=True)).replace("1 2<", counts + "<")
    tracemalloc.start()
    refuse(tmp_path, text, why)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30e6


@TEXTS
def test_unknown_compressions(tmp_path: Path, text_of: TextOf) -> None:
    text = text_of([Measured((1, 2))], Ways(counted_zeroes=True)).replace("CountedZeroes", "Zip")
    assert refuse(tmp_path, text, "compressed in an unknown way").detail == "Zip"


def test_counts_that_begin_later(tmp_path: Path) -> None:
    text = text_2006([Measured()]).replace("<ChannelData", '<ChannelData Start="9"')
    refuse(tmp_path, text, "do not begin with the first channel")


@TEXTS
@pytest.mark.parametrize(
    "live", ["9.5", "PT9.5", "-PT9.5S", "PT-9.5S", "PT1E3S", "P1Y", "PT", "P", "PT5SS", "PTnanS"]
)
def test_live_times(tmp_path: Path, text_of: TextOf, live: str) -> None:
    text = text_of([Measured(live=live)])
    assert refuse(tmp_path, text, "a length of time is not one of ISO 8601").detail == live


@TEXTS
def test_endless_live_times(tmp_path: Path, text_of: TextOf) -> None:
    refuse(tmp_path, text_of([Measured(live=f"PT{'9' * 400}S")]), "a length of time")


@TEXTS
def test_instants(tmp_path: Path, text_of: TextOf) -> None:
    text = text_of([Measured()]).replace("2026-01-02T03:04:05Z", "yesterday")
    assert refuse(tmp_path, text, "an instant is not one of ISO 8601").detail == "yesterday"


@TEXTS
@pytest.mark.parametrize(
    ("energies", "why"),
    [
        ((0, -3), "energies of channels do not rise"),
        ((0, 3, -1), "energies of channels do not rise"),
        ((7,), "energies of channels do not rise"),
        ((0, 1e300, 1e308), "energies of channels do not rise"),
        ((), "says nothing of energies"),
        ((1,) * 21, "more than 20 numbers"),
        (("NaN", 3), "not a number"),
    ],
)
def test_energies(tmp_path: Path, text_of: TextOf, energies: tuple[float, ...], why: str) -> None:
    refuse(tmp_path, text_of([Measured(energies=energies)]), why)


@pytest.mark.parametrize(
    ("energies", "why"),
    [
        ((1, 2, 3), "4 channels have 3 boundaries"),
        ((1, 2, 3, 4, 5, 6), "4 channels have 6 boundaries"),
        ((1, 2, 2, 4, 5), "energies of channels do not rise"),
    ],
)
def test_boundaries(tmp_path: Path, energies: tuple[float, ...], why: str) -> None:
    refuse(tmp_path, text_2012([Measured(energies=energies, are_boundaries=True)]), why)


def test_deviations(tmp_path: Path) -> None:
    deviations = (
        "<EnergyValues>1 2</EnergyValues><EnergyDeviationValues>0 {}</EnergyDeviationValues>"
    )
    text = text_2012([Measured()]).replace("</EnergyCal", deviations + "</EnergyCal")
    assert refuse(tmp_path, text.format(-2.5), "deviations .* are not read").hint is not None
    tmp_path.joinpath("none.n42").write_text(text.format(0))
    assert len(read_n42(tmp_path / "none.n42")) == 1


@TEXTS
def test_references_to_nothing(tmp_path: Path, text_of: TextOf) -> None:
    text = text_of([Measured()]).replace('="S0"', '="Gone"', 1)
    assert refuse(tmp_path, text, "a calibration that does not exist").detail is not None


@TEXTS
def test_one_id_for_two_calibrations(tmp_path: Path, text_of: TextOf) -> None:
    text = text_of([Measured(), Measured(energies=(0, 4))])
    text = text.replace('id="S1"', 'id="S0"').replace('ID="S1"', 'ID="S0"')
    assert refuse(tmp_path, text, "has two calibrations of one id").detail == "S0"


def test_several_energy_calibrations(tmp_path: Path) -> None:
    text = text_2006([Measured(), Measured()]).replace('IDs="S0"', 'IDs="S0 S1"')
    refuse(tmp_path, text, "several energy calibrations")
    text = text_2006([Measured()], Ways(by_reference=False))
    scale = text[text.index("<Calibration") : text.index("<ChannelData")]
    refuse(tmp_path, text.replace(scale, scale + scale), "several energy calibrations")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Polynomial", "FullRangeFraction", "only polynomials are read"),
        ("keV", "joule", "unknown unit"),
        ("</Coefficients>", "</Coefficients><Coefficients>1</Coefficients>", "more than one"),
    ],
)
def test_calibrations_of_2006(tmp_path: Path, old: str, new: str, why: str) -> None:
    refuse(tmp_path, text_2006([Measured()]).replace(old, new), why)


@TEXTS
def test_too_many_spectra(tmp_path: Path, text_of: TextOf, monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of([Measured()] * 3)
    monkeypatch.setattr(n42, "_MOST_SPECTRA", 2)
    refuse(tmp_path, text, "has more than 2 spectra")
    monkeypatch.undo()
    monkeypatch.setattr(n42, "_MOST_CHANNELS", 11)
    refuse(tmp_path, text, "more than 11 channels together")


@TEXTS
def test_many_long_spectra_of_few_bytes(tmp_path: Path, text_of: TextOf) -> None:
    """A file of 200 kB that would have 50 million channels."""
    text = text_of([Measured((1, 2))] * 400, Ways(counted_zeroes=True))
    tracemalloc.start()
    refuse(tmp_path, text.replace("1 2<", "5 0 131071<"), "channels together")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 600e6


def test_depth(tmp_path: Path) -> None:
    deep = "<a>" * 10**5 + "</a>" * 10**5
    refuse(tmp_path, f"<RadInstrumentData>{deep}</RadInstrumentData>", "64 elements deep")


def test_elements_and_attributes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(n42_xml, "_MOST", 1000)
    for inner in ("<a/>" * 1000, "<a b='' c=''/>" * 334):
        refuse(tmp_path, f"<RadInstrumentData>{inner}</RadInstrumentData>", "more than 1000 elem")


def test_long_tags(tmp_path: Path) -> None:
    attributes = " ".join(f"a{n}='>'" for n in range(200_000))
    for inner in (f"<a {attributes}/>", f"<!-- {attributes} -->"):
        refuse(
            tmp_path, f"<RadInstrumentData>{inner}</RadInstrumentData>", "more than 1048576 bytes"
        )


def test_large_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(n42_xml, "_LARGEST", 1000)
    refuse(tmp_path, " " * 1001, "has 1001 bytes; more than 1000 are not read")
