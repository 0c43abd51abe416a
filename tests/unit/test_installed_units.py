"""Units that installed packages bring: of deliveries, and functions of streams."""

from __future__ import annotations

from pathlib import Path

import pytest

from nilometer.database.units import ENTRY_POINTS as FUNCTIONS
from nilometer.database.units import Units
from nilometer.deliveries.find_units import known_units, unit_class
from nilometer.deliveries.unit import ENTRY_POINTS as DELIVERIES
from nilometer.errors import InputError
from tests.installed_package import install

_UNIT = """
class Printer:
    options = ()
    def deliver(self, chunk): ...
    def close(self): ...

class Odd:
    options = ()
"""


def test_delivery_units_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = "printer = printers:Printer\nodd = printers:Odd\nmqtt = printers:Printer"
    install(tmp_path, "printers", DELIVERIES, entries, _UNIT)
    install(tmp_path, "broken_units", DELIVERIES, "broken = broken_units:X", "1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    assert {"printer", "broken", "mqtt", "webhook"} < set(known_units())
    assert unit_class("Printer").__name__ == "Printer"
    assert unit_class("mqtt").__name__ == "MqttUnit"  # a name that is built in is not taken
    with pytest.raises(InputError, match="delivery unit broken cannot be loaded") as refused:
        unit_class("broken")
    assert "ZeroDivisionError" in str(refused.value.detail)
    with pytest.raises(InputError, match="delivery unit odd is not a delivery unit") as refused:
        unit_class("odd")
    assert "deliver, close" in str(refused.value.detail)


def test_functions_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "def double(reading):\n    return reading * 2\n"
    install(tmp_path, "functions_of_ours", FUNCTIONS, "double = functions_of_ours:double", code)
    install(tmp_path, "broken_functions", FUNCTIONS, "broken = broken_functions:f", "1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    units = Units()
    assert units.find("Double")(4) == 8
    units.register("double", str)
    assert units.find("double")(4) == "4"  # what is registered comes first
    with pytest.raises(InputError, match="unit broken cannot be loaded"):
        units.find("broken")
    with pytest.raises(InputError, match="there is no unit doubel") as refused:
        units.find("doubel")
    assert refused.value.hint == "did you mean double?"
