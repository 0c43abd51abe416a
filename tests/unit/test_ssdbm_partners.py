"""For which loads FEW-join compares less than BEW-join (SSDBM, output execution time)."""

from __future__ import annotations

import pytest

from nilometer_papers.experiments.experiment import Profile, Row, Setting
from nilometer_papers.experiments.ssdbm.partners import (
    CLAIMS,
    LARGEST,
    PARTNERS,
    SIZES,
    STORES,
    measure,
    ratios,
)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return measure(Setting(Profile.QUICK))


@pytest.mark.parametrize("stores", STORES)
def test_few_join_compares_less_from_a_number_of_partners_on(rows: list[Row], stores: int) -> None:
    """What number depends on the stores and the hours of the day; it is never 0.2, nor over 1.2."""
    by_partners = ratios(rows, PARTNERS, stores)
    assert len(by_partners) == 7
    assert all(one < 1 for at, one in by_partners.items() if at < 0.2)
    assert all(one > 1 for at, one in by_partners.items() if at > 1.2)


@pytest.mark.parametrize("stores", STORES)
def test_the_more_partners_the_more_bew_join_compares(rows: list[Row], stores: int) -> None:
    by_partners = ratios(rows, PARTNERS, stores)
    assert list(by_partners.values()) == sorted(by_partners.values())


@pytest.mark.parametrize("stores", STORES)
def test_unlike_rates_do_not_help_few_join(rows: list[Row], stores: int) -> None:
    by_size = ratios(rows, SIZES, stores)
    assert by_size[LARGEST[-1]] < 0.8 * by_size[LARGEST[0]]
    assert all(claim.check(rows).holds for claim in CLAIMS)
