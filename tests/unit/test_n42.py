"""Files of the format ANSI N42.42, written by hand after the standard, of 2006 and of 2012."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from nilometer.sensors.stream_type import SensorAddress
from nilometer.sensors.types.file import FileStream
from nilometer_papers.idhm.detector import CENTRES, CHANNELS, WIDTH
from nilometer_papers.idhm.n42 import MeasuredSpectrum, N42Error, read_n42, spectrum_rows
from tests.n42_files import Measured, Ways, counted_zeroes, text_2006, text_2012

TextOf = Callable[..., str]

FORM_2012 = """<?xml version="1.0" encoding="UTF-8"?>
<RadInstrumentData xmlns="http://physics.nist.gov/N42/2011/N42"
                   n42DocUUID="00000000-0000-4000-8000-000000000001">
  <RadInstrumentInformation id="Instrument">
    <RadInstrumentManufacturerName>None</RadInstrumentManufacturerName>
    <RadInstrumentModelName>Hand</RadInstrumentModelName>
    <RadInstrumentClassCode>Other</RadInstrumentClassCode>
    <RadInstrumentVersion>
      <RadInstrumentComponentName>Software</RadInstrumentComponentName>
      <RadInstrumentComponentVersion>1</RadInstrumentComponentVersion>
    </RadInstrumentVersion>
  </RadInstrumentInformation>
  <RadDetectorInformation id="Aa1">
    <RadDetectorCategoryCode>Gamma</RadDetectorCategoryCode>
    <RadDetectorKindCode>NaI</RadDetectorKindCode>
  </RadDetectorInformation>
  <EnergyCalibration id="Scale">
    <CoefficientValues>0 {gain} 0</CoefficientValues>
  </EnergyCalibration>
  <RadMeasurement id="First">
    <MeasurementClassCode>Foreground</MeasurementClassCode>
    <StartDateTime>2026-01-02T03:04:05Z</StartDateTime>
    <RealTimeDuration>PT10S</RealTimeDuration>
    <Spectrum id="Counted" radDetectorInformationReference="Aa1" energyCalibrationReference="Scale">
      <LiveTimeDuration>PT9.5S</LiveTimeDuration>
      <ChannelData{compression}>{counts}</ChannelData>
    </Spectrum>
  </RadMeasurement>
</RadInstrumentData>
"""

FORM_2006 = """<?xml version="1.0" encoding="UTF-8"?>
<N42InstrumentData xmlns="http://physics.nist.gov/Divisions/Div846/Gp4/ANSIN4242/2005/ANSIN4242">
  <Measurement>
    <InstrumentInformation>
      <InstrumentType>Other</InstrumentType>
      <Manufacturer>None</Manufacturer>
      <InstrumentModel>Hand</InstrumentModel>
    </InstrumentInformation>
    <Spectrum Type="PHA" Detector="Aa1">
      <StartTime>2026-01-02T03:04:05Z</StartTime>
      <RealTime>PT10S</RealTime>
      <LiveTime>PT9.5S</LiveTime>
      <SourceType>Item</SourceType>
      <Calibration Type="Energy" EnergyUnits="keV">
        <Equation Model="Polynomial"><Coefficients>0 {gain} 0</Coefficients></Equation>
      </Calibration>
      <ChannelData{compression}>{counts}</ChannelData>
    </Spectrum>
  </Measurement>
</N42InstrumentData>
"""

OURS = WIDTH * 1000
"""The width of a channel of the application, in keV."""
PEAK = np.bincount([*[190] * 40, *[191] * 100, *[192] * 35, 900], minlength=CHANNELS)


def write(
    folder: Path, form: str, counts: object, gain: float = OURS, compression: str = ""
) -> Path:
    path = folder / "spectrum.n42"
    if compression:
        compression = f' {compression}="CountedZeroes"'
    text = " ".join(str(one) for one in np.asarray(counts))
    path.write_text(form.format(gain=f"{gain:.9f}", counts=text, compression=compression))
    return path


@pytest.mark.parametrize("form", [FORM_2006, FORM_2012])
def test_both_forms_of_the_standard(tmp_path: Path, form: str) -> None:
    (spectrum,) = read_n42(write(tmp_path, form, PEAK))
    assert spectrum.live == 9.5
    assert spectrum.detector == "Aa1"
    assert spectrum.started == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp() * 1e6
    assert spectrum.counts.tolist() == PEAK.tolist()
    assert spectrum.edges == pytest.approx(np.arange(CHANNELS + 1) * WIDTH, abs=1e-5)
    assert spectrum.rebinned() == pytest.approx(PEAK, abs=0.1)


@pytest.mark.parametrize(
    ("form", "attribute"), [(FORM_2006, "Compression"), (FORM_2012, "compressionCode")]
)
def test_counted_zeroes(tmp_path: Path, form: str, attribute: str) -> None:
    packed = counted_zeroes(PEAK.tolist())
    assert len(packed) < 15
    (spectrum,) = read_n42(write(tmp_path, form, packed, compression=attribute))
    assert spectrum.counts.tolist() == PEAK.tolist()


def test_other_channels_are_brought_into_ours(tmp_path: Path) -> None:
    """2048 channels of 3 keV: a peak at 2.223 MeV stays there, and no count gets lost."""
    place = 2223 / 3.0
    counts = np.round(1000 * np.exp(-(((np.arange(2048) + 0.5 - place) / 12) ** 2))).astype(int)
    (spectrum,) = read_n42(write(tmp_path, FORM_2012, counts, gain=3.0))
    ours = spectrum.rebinned()
    assert ours.sum() == pytest.approx(counts.sum())
    assert (ours @ CENTRES) / ours.sum() == pytest.approx(2.223, abs=0.001)


def read(folder: Path, text: str) -> list[MeasuredSpectrum]:
    path = folder / "written.n42"
    path.write_text(text)
    return read_n42(path)


TEXTS = pytest.mark.parametrize("text_of", [text_2006, text_2012])


@TEXTS
def test_several_measurements_and_detectors(tmp_path: Path, text_of: TextOf) -> None:
    kinds = ["Foreground", "Background", "Calibration"]
    written = [
        Measured((1, 0, n), (0, n), detector=f"D{n}", kind=kind) for n, kind in enumerate(kinds, 1)
    ]
    spectra = read(tmp_path, text_of(written))
    assert [one.detector for one in spectra] == ["D1", "D2", "D3"]
    assert [one.counts.tolist() for one in spectra] == [[1, 0, 1], [1, 0, 2], [1, 0, 3]]
    assert [one.edges[-1] for one in spectra] == pytest.approx([0.003, 0.006, 0.009])


@TEXTS
@pytest.mark.parametrize("ways", [Ways(namespace=False), Ways(separator=","), Ways(separator="\n")])
def test_ways_of_writing(tmp_path: Path, text_of: TextOf, ways: Ways) -> None:
    (spectrum,) = read(tmp_path, text_of([Measured((0.25, 3, 1e3))], ways))
    assert spectrum.counts.tolist() == [0.25, 3, 1000]


@TEXTS
@pytest.mark.parametrize("declared", [True, False])
def test_a_prefix(tmp_path: Path, text_of: TextOf, declared: bool) -> None:
    text = re.sub(r"<(/?)(\w)", r"<\1n42:\2", text_of([Measured()]))
    text = text.replace("xmlns=", "xmlns:n42=" if declared else "of=")
    (spectrum,) = read(tmp_path, text)
    assert spectrum.counts.tolist() == [5, 0, 0, 7]


@TEXTS
def test_elements_of_others_are_not_ours(tmp_path: Path, text_of: TextOf) -> None:
    text = text_of([Measured()]).replace(
        "<ChannelData>", "<x:ChannelData>9</x:ChannelData><ChannelData>"
    )
    (spectrum,) = read(tmp_path, text)
    assert spectrum.counts.tolist() == [5, 0, 0, 7]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT9.5S", 9.5),
        ("PT1H2M3.5S", 3723.5),
        ("PT2M", 120),
        ("P1DT1S", 86401),
        (" PT.5S\n", 0.5),
    ],
)
@TEXTS
def test_live_times(tmp_path: Path, text_of: TextOf, text: str, seconds: float) -> None:
    assert read(tmp_path, text_of([Measured(live=text)]))[0].live == seconds


@TEXTS
@pytest.mark.parametrize(
    ("text", "hour"), [("", 3), ("Z", 3), ("+02:00", 1), ("-04:00", 7), (".1234567Z", 3)]
)
def test_instants_have_zones(tmp_path: Path, text_of: TextOf, text: str, hour: int) -> None:
    (spectrum,) = read(tmp_path, text_of([Measured()]).replace("05Z", "05" + text))
    assert spectrum.started is not None
    assert datetime.fromtimestamp(spectrum.started // 10**6, UTC).hour == hour
    assert spectrum.started % 10**6 == (123456 if "." in text else 0)


@TEXTS
def test_files_without_an_instant(tmp_path: Path, text_of: TextOf) -> None:
    assert read(tmp_path, text_of([Measured(start=None)]))[0].started is None
    assert read(tmp_path, text_of([Measured(start=datetime(1970, 1, 1))]))[0].started is None


@TEXTS
def test_spectra_without_live_time_or_energies_are_left_out(
    tmp_path: Path, text_of: TextOf
) -> None:
    whole = Measured((1, 2), detector="Whole")
    unfit = [replace(whole, live="PT0S"), replace(whole, energies=(0, 0, 0)), Measured((3,))]
    (spectrum,) = read(tmp_path, text_of([*unfit, whole]))
    assert spectrum.detector == "Whole"
    for one in unfit:
        with pytest.raises(N42Error, match="no gamma spectrum with live time and energies"):
            read(tmp_path, text_of([one]))


def test_boundaries_of_channels(tmp_path: Path) -> None:
    for energies in ((1, 2, 4, 7), (1, 2, 4, 7, 10)):
        (spectrum,) = read(tmp_path, text_2012([Measured(energies=energies, are_boundaries=True)]))
        assert spectrum.edges * 1000 == pytest.approx([1, 2, 4, 7, 10])


def test_units_of_energy(tmp_path: Path) -> None:
    for unit, last in (("keV", 0.012), ("MeV", 12.0), ("eV", 0.000012)):
        (spectrum,) = read(tmp_path, text_2006([Measured()]).replace("keV", unit))
        assert spectrum.edges[-1] == pytest.approx(last)


def test_the_only_calibration_needs_no_reference(tmp_path: Path) -> None:
    for text in (
        text_2012([Measured()]).replace(' energyCalibrationReference="S0"', ""),
        text_2006([Measured()]).replace(' CalibrationIDs="S0"', ""),
    ):
        assert read(tmp_path, text)[0].edges[-1] == pytest.approx(0.012)


def test_nothing_is_made_up_for_spectra_without_calibration(tmp_path: Path) -> None:
    """Where there are two and none is named, it is not known which."""
    two = [Measured(), Measured(energies=(0, 5))]
    for text in (
        text_2012(two).replace(' energyCalibrationReference="S0"', ""),
        text_2006(two).replace(' CalibrationIDs="S0"', ""),
    ):
        (spectrum,) = read(tmp_path, text)
        assert spectrum.edges[-1] == pytest.approx(0.020)


def test_calibrations_of_other_things(tmp_path: Path) -> None:
    other = text_2006([Measured()], Ways(by_reference=False)).replace(
        "<Calibration",
        '<Calibration Type="FWHM"><Equation Model="Other"/></Calibration><Calibration',
    )
    assert read(tmp_path, other)[0].edges[-1] == pytest.approx(0.012)
    named = text_2006([Measured()]).replace('CalibrationIDs="S0"', 'CalibrationIDs="S0 Shape"')
    named = named.replace("<Calibration ", '<Calibration Type="FWHM" ID="Shape"/><Calibration ', 1)
    assert read(tmp_path, named)[0].edges[-1] == pytest.approx(0.012)


def test_a_calibration_may_be_told_twice(tmp_path: Path) -> None:
    text = text_2006([Measured()])
    scale = re.findall("<Calibration .*?</Calibration>", text)[0]
    assert read(tmp_path, text.replace(scale, scale + scale))[0].edges[-1] == pytest.approx(0.012)


def test_neutrons_are_left_out(tmp_path: Path) -> None:
    two = [Measured(detector="Aa1"), Measured(detector="Ba2")]
    text = text_2012(two).replace("Gamma</Rad", "Neutron</Rad", 1)
    assert [one.detector for one in read(tmp_path, text)] == ["Ba2"]
    text = text_2006(two, Ways(in_detector_data=True)).replace('"Gamma"', '"Neutron"', 1)
    assert [one.detector for one in read(tmp_path, text)] == ["Ba2"]


def test_the_only_detector_needs_no_reference(tmp_path: Path) -> None:
    text = text_2012([Measured()]).replace(' radDetectorInformationReference="Aa1"', "")
    assert read(tmp_path, text)[0].detector == "Aa1"


def test_live_time_beside_the_spectrum(tmp_path: Path) -> None:
    live = "<LiveTimeDuration>PT9.5S</LiveTimeDuration>"
    text = text_2012([Measured()]).replace(live, "").replace("<Spectrum ", live + "<Spectrum ")
    assert read(tmp_path, text)[0].live == 9.5


def test_rows_for_tables_and_streams(tmp_path: Path) -> None:
    path = write(tmp_path, FORM_2012, PEAK)
    rows = spectrum_rows([path, path])
    assert rows.num_rows == 2
    assert rows["started"][0].as_py() == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert len(rows["counts"][1]) == CHANNELS


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[2].joinpath("docs", "idhm.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    tmp_path.joinpath("measured").mkdir()
    write(tmp_path / "measured", FORM_2012, PEAK)
    monkeypatch.chdir(tmp_path)
    exec(example)
    written = pq.read_table("measured.parquet")
    stream = FileStream()
    path = str(tmp_path / "measured.parquet")
    stream.init_stream(SensorAddress("S", "s", path, {}, written.schema, "started", "s/1"))
    reading = stream.read_stream()
    assert not isinstance(reading, list)
    (row,) = reading.value.to_pylist()
    assert row["counts"][191] == pytest.approx(100)
