"""Files of the format ANSI N42.42, written by hand after the standard, of 2006 and of 2012."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from nilometer.apps.idhm.detector import CENTRES, CHANNELS, WIDTH
from nilometer.apps.idhm.n42 import N42Error, read_n42, spectrum_rows
from nilometer.errors import InputError
from nilometer.sensors.stream_type import SensorAddress
from nilometer.sensors.types.file import FileStream

pytest.importorskip("SpecUtils", reason="SandiaSpecUtils is not installed")

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


def counted_zeroes(counts: np.ndarray) -> list[int]:
    """Each run of zeroes as a zero and its length."""
    packed: list[int] = []
    for one in counts.tolist():
        if one:
            packed.append(one)
        elif len(packed) > 1 and packed[-2] == 0:
            packed[-1] += 1
        else:
            packed += [0, 1]
    return packed


@pytest.mark.parametrize("form", [FORM_2006, FORM_2012])
def test_both_forms_of_the_standard(tmp_path: Path, form: str) -> None:
    (found,) = read_n42(write(tmp_path, form, PEAK))
    assert found.live == 9.5
    assert found.detector == "Aa1"
    assert found.started == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp() * 1e6
    assert found.counts.tolist() == PEAK.tolist()
    assert found.edges == pytest.approx(np.arange(CHANNELS + 1) * WIDTH, abs=1e-5)
    assert found.rebinned() == pytest.approx(PEAK, abs=0.1)


@pytest.mark.parametrize(
    ("form", "attribute"), [(FORM_2006, "Compression"), (FORM_2012, "compressionCode")]
)
def test_counted_zeroes(tmp_path: Path, form: str, attribute: str) -> None:
    packed = counted_zeroes(PEAK)
    assert len(packed) < 15
    (found,) = read_n42(write(tmp_path, form, packed, compression=attribute))
    assert found.counts.tolist() == PEAK.tolist()


def test_other_channels_are_brought_into_ours(tmp_path: Path) -> None:
    """2048 channels of 3 keV: a peak at 2.223 MeV stays there, and no count gets lost."""
    place = 2223 / 3.0
    counts = np.round(1000 * np.exp(-(((np.arange(2048) + 0.5 - place) / 12) ** 2))).astype(int)
    (found,) = read_n42(write(tmp_path, FORM_2012, counts, gain=3.0))
    ours = found.rebinned()
    assert ours.sum() == pytest.approx(counts.sum())
    assert (ours @ CENTRES) / ours.sum() == pytest.approx(2.223, abs=0.001)


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


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entity_bombs_are_refused(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, FORM_2012, PEAK)
    text = path.read_text().replace("?>", "?>" + BOMB, 1).replace("UTF-8", encoding)
    path.write_text(text, encoding=encoding)
    with pytest.raises(N42Error, match="declares a document type"):
        read_n42(path)


@pytest.mark.parametrize(
    "text", ["", "counts\n1\n2\n", "<RadInstrumentData>", "<html><body>no</body></html>"]
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.n42"
    path.write_text(text)
    with pytest.raises(N42Error, match=r"other\.n42"):
        read_n42(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_n42(tmp_path / "nowhere.n42")


@pytest.mark.parametrize("cut", [700, 1200, 1500, 1700])
def test_a_file_that_is_cut_off_is_no_crash(tmp_path: Path, cut: int) -> None:
    path = write(tmp_path, FORM_2012, PEAK)
    path.write_text(path.read_text()[:cut])
    with pytest.raises(N42Error):
        read_n42(path)
