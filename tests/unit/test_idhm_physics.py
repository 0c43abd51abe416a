"""The simulator of the application: materials, detectors, shields, boxes, and what is known."""

from __future__ import annotations

import numpy as np
import pytest

from nilometer_papers.idhm import knowledge
from nilometer_papers.idhm.boxes import Box, Packing, draw_boxes, moles
from nilometer_papers.idhm.detector import CENTRES, CHANNELS, DETECTORS, WIDTH, responses
from nilometer_papers.idhm.elements import ATOMIC_MASSES, ELEMENTS, LINES
from nilometer_papers.idhm.materials import MATERIALS, Family, Role, of_family
from nilometer_papers.idhm.shielding import LIGHT_SHIELDS, find_shield
from nilometer_papers.idhm.spectrum_model import (
    background,
    burst_counts,
    burst_events,
    expected_rates,
    line_rates,
    templates,
)


def test_lines_are_those_of_the_literature() -> None:
    energies = {element: [] for element in ELEMENTS}
    for line in LINES:
        energies[line.element].append(line.energy)
    assert energies == {
        "H": [2.223],
        "C": [4.44],
        "N": [10.83, 5.11, 2.31],
        "O": [6.13],
        "Cl": [6.11, 1.95, 1.17],
        "S": [5.42, 0.84],
        "P": [3.90, 0.64],
        "Fe": [7.63],
        "Al": [7.72, 1.78],
        "Si": [3.54, 4.93],
    }


@pytest.mark.parametrize(
    ("name", "element", "percent"),
    [("TNT", "N", 18.5), ("RDX", "N", 37.8), ("water", "H", 11.2), ("PVC", "Cl", 56.7)],
)
def test_composition(name: str, element: str, percent: float) -> None:
    """Shares by mass as handbooks have them."""
    assert 100 * MATERIALS[name].mass_shares()[element] == pytest.approx(percent, abs=0.1)


def test_shares_of_all_materials_add_up_to_one() -> None:
    for material in MATERIALS.values():
        shares = material.mass_shares()
        assert sum(shares.values()) == pytest.approx(1)
        assert set(shares) <= set(ATOMIC_MASSES)


def test_every_family_has_materials_of_every_role() -> None:
    for family in Family:
        names = [{one.name for one in of_family(family, role)} for role in Role]
        assert all(len(one) >= 2 for one in names)
    formulas = [tuple(sorted(one.parts.items())) for one in MATERIALS.values()]
    assert len(set(formulas)) == len(formulas), "a new material must not be a known one"


@pytest.mark.parametrize("kind", list(DETECTORS))
def test_peaks_are_where_and_as_wide_as_they_should_be(kind: str) -> None:
    detector = DETECTORS[kind]
    (row,) = responses(detector, [6.13])
    # Above the middle, where the first escape peak does not reach: half of the width.
    full = int(np.argmax(np.where(CENTRES > 5.9, row, 0)))
    assert CENTRES[full] == pytest.approx(6.13, abs=2 * WIDTH)
    above = CENTRES[(row > row[full] / 2) & (CENTRES >= 6.13)]
    assert above[-1] - 6.13 == pytest.approx(detector.full_width(6.13) / 2, abs=1.5 * WIDTH)


def test_escape_peaks() -> None:
    """Of germanium, where each stands alone: 0.511 and 1.022 MeV below, with their ratios."""
    detector = DETECTORS["HPGe"]
    (row,) = responses(detector, [6.13])

    def area(energy: float) -> float:
        near = np.abs(CENTRES - energy) < 0.05
        beside = (np.abs(CENTRES - energy) < 0.1) & ~near
        return float(row[near].sum() - row[beside].mean() * near.sum())

    pairs = 1 - np.exp(-(6.13 - 1.022) / 4)
    assert area(6.13) == pytest.approx(detector.efficiency * 6.13**-0.85, rel=0.02)
    assert area(6.13 - 0.511) / area(6.13) == pytest.approx(1.1 * pairs, rel=0.03)
    assert area(6.13 - 1.022) / area(6.13) == pytest.approx(1.4 * pairs, rel=0.03)


def test_no_escape_peaks_where_no_pairs_can_be() -> None:
    (row,) = responses(DETECTORS["HPGe"], [0.84])
    assert row[np.abs(CENTRES - (0.84 - 0.511)) < 0.03].std() < 0.01 * row.max()


def test_the_continuum_ends_at_the_compton_edge() -> None:
    """2.223 MeV leaves at most 1.994 MeV with an electron: E / (1 + m / 2E)."""
    (row,) = responses(DETECTORS["HPGe"], [2.223])
    edge = 2.223 / (1 + 0.511 / (2 * 2.223))
    assert edge == pytest.approx(1.994, abs=0.001)
    assert row[np.abs(CENTRES - (edge - 0.05)) < 0.02].mean() > 0
    beyond = row[np.abs(CENTRES - (edge + 0.05)) < 0.02].mean()
    assert beyond < 1e-6 * row[np.abs(CENTRES - (edge - 0.05)) < 0.02].mean()


def test_shields_attenuate_as_tables_say() -> None:
    steel = find_shield("20 mm steel")
    assert steel.gammas_left([2.0])[0] == pytest.approx(np.exp(-0.0426 * 7.87 * 2))
    assert steel.neutrons_left() == pytest.approx(np.exp(-0.168 * 2))
    assert find_shield("none").gammas_left([1.0, 5.0]).tolist() == [1.0, 1.0]
    assert [find_shield(one).heavy for one in LIGHT_SHIELDS] == [False] * 4
    heavy = ("20 mm steel", "20 mm lead", "80 mm plastic")
    assert all(find_shield(one).heavy for one in heavy)


def test_a_shield_of_steel_hides_contents_and_shows_iron() -> None:
    bare = Box(1, (("TNT", 1.0), ("water", 0.5)))
    steel = Box(1, bare.contents, "20 mm steel")
    rates = dict(zip((line.name for line in LINES), line_rates([bare, steel]).T, strict=True))
    left = np.exp(-0.168 * 2) * find_shield("20 mm steel").gammas_left([6.13])[0]
    assert rates["O 6.13"][1] / rates["O 6.13"][0] == pytest.approx(left)
    assert rates["Fe 7.63"][0] == 0 < rates["Fe 7.63"][1]


@pytest.mark.parametrize("kind", list(DETECTORS))
def test_spectra_are_sums_of_templates_and_background(kind: str) -> None:
    """So the linear fit of LINES has the right answer without noise."""
    box = Box(1, (("RDX", 0.8), ("PVC", 0.1), ("wool", 0.2)))
    (rate,) = expected_rates([box], kind)
    assert rate == pytest.approx(moles([box])[0] @ templates(kind) + background(kind))
    lines = knowledge.find_lines(kind, [rate * 100], 100.0)
    by_name = sorted(zip(ELEMENTS, moles([box])[0], strict=True))
    assert lines["intensities"][0].as_py() == pytest.approx([m for _, m in by_name], abs=0.01)


def test_the_nitrogen_of_a_kilogram() -> None:
    """By hand: neutrons on a cm², atoms, the cross section, the face of the detector."""
    flux = 1e9 / (4 * np.pi * 35.0**2)
    atoms = 1000 * 0.185 / 14.007 * 6.022e23
    photons = flux * atoms * 0.05e-24
    names = [line.name for line in LINES]
    (rates,) = line_rates([Box(1, (("TNT", 1.0),))])
    assert rates[names.index("N 5.11")] == pytest.approx(photons, rel=0.01)


def test_bursts_are_poisson_and_repeatable() -> None:
    box = draw_boxes(Packing(known=True), 3, 5, 1)[0]
    rates = expected_rates([box], "NaI")
    counts = np.stack([burst_counts(rates, 2.0, (4, burst))[0] for burst in range(300)])
    busy = rates[0] > 20
    assert counts[:, busy].mean() == pytest.approx(2 * rates[0, busy].mean(), rel=0.01)
    ratio = counts[:, busy].var(axis=0) / counts[:, busy].mean(axis=0)
    assert ratio.mean() == pytest.approx(1, abs=0.05)
    assert (burst_counts(rates, 2.0, (4, 7)) == burst_counts(rates, 2.0, (4, 7))).all()


def test_events_make_up_the_counts_of_a_burst() -> None:
    box = draw_boxes(Packing(known=False), 3, 5, 1)[0]
    seen = burst_events(box, "LaBr3", 2, 1.5, 9)
    assert (seen.box, seen.number, seen.live) == (5, 2, 1.5)
    assert (np.diff(seen.times) >= 0).all()
    assert 0 <= seen.times[0] <= seen.times[-1] < 1_500_000
    expected = expected_rates([box], "LaBr3")[0] * 1.5
    counts = np.bincount(seen.channels, minlength=CHANNELS)
    assert counts.sum() == pytest.approx(expected.sum(), abs=6 * np.sqrt(expected.sum()))
    again = burst_events(box, "LaBr3", 2, 1.5, 9)
    assert (again.channels == seen.channels).all()
    assert (again.times == seen.times).all()
    assert not np.array_equal(burst_events(box, "LaBr3", 3, 1.5, 9).times, seen.times)


@pytest.mark.parametrize("trial", [True, False])
def test_new_boxes_hold_what_the_knowledge_base_has_never_seen(trial: bool) -> None:
    role = Role.TRIAL if trial else Role.NEW
    boxes = draw_boxes(Packing(known=False, trial=trial), 1, 0, 300)
    for box in boxes:
        roles = [MATERIALS[name].role for name, _ in box.contents]
        assert roles[0] is role
        assert set(roles) <= {role, Role.KNOWN}
        assert box.hazard is None or box.hazard.role is role
        assert all(0.05 <= kilograms <= 3 for _, kilograms in box.contents)
        assert 1 <= len(box.contents) <= 5
    share = np.mean([box.family is not Family.NONE for box in boxes])
    assert share == pytest.approx(0.5, abs=0.1)
    assert {box.shield for box in boxes} == set(LIGHT_SHIELDS)


def test_the_knowledge_base_has_known_materials_only() -> None:
    rows = knowledge.rows("NaI", 40)
    assert rows.num_rows == 40 * len(knowledge.EXPOSURES)
    for family, material in zip(
        rows["family"].to_pylist(), rows["material"].to_pylist(), strict=True
    ):
        if family == "none":
            assert material == "none"
        else:
            assert MATERIALS[material].role is Role.KNOWN
            assert MATERIALS[material].family == family
    assert {len(one) for one in rows["pattern"].to_pylist()} == {7}
    assert rows.equals(knowledge.rows("NaI", 40))
