"""Declares belt, detectors, knowledge and queries on the demo's server: `pipeline.sql`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final

from nilometer.sql.parse.query_text import split_at_semicolons, tokenize
from nilometer_papers.idhm.at_work import RECOMMENDATIONS, TOPIC
from nilometer_papers.idhm.decision import SUSPICION, Limits
from nilometer_papers.idhm.site import BELT

DETECTORS: Final[Mapping[str, str]] = {"1": "NaI", "2": "NaI", "3": "LaBr3"}
"""Their kinds by name; the last one publishes over MQTT if there is a broker."""
BY_MQTT: Final = "3"
QUERIES: Final = ("belt", "verdicts", "peaks", "fused")
CONFIDENCE: Final = "CASE WHEN suspicion < 0.5 THEN 1 - suspicion ELSE suspicion END"
"""The confidence that a box is suspect, or that it is safe: whichever is likelier."""
_FOLDER: Final = files("nilometer_papers.idhm")
CONFIG: Final = Path(str(_FOLDER / "server.toml"))
"""The server's configuration, in addition to statements."""


@dataclass(frozen=True)
class Reach:
    """How to reach belt and detectors, and the key that signs recommendations."""

    port: int
    broker: int | None
    secret: str

    def values(self) -> dict[str, str]:
        """The values of placeholders in `pipeline.sql`."""
        here = f"http://127.0.0.1:{self.port}"
        by_http = "http WITH (interval = '200ms', max_bytes = '16MB', unit = 'spectra')"
        if self.broker is None:
            remote, address = by_http, f"{here}/{BY_MQTT}"
        else:
            remote = "mqtt WITH (qos = 1, max_bytes = '16MB', unit = 'spectra')"
            address = f"mqtt://127.0.0.1:{self.broker}/{TOPIC.format(BY_MQTT)}"
        return {
            "site": here,
            "near": by_http,
            "remote": remote,
            "remote_address": address,
            "belt": f"{here}/{BELT}",
            "recommendations": f"{here}/{RECOMMENDATIONS}",
            "secret": self.secret,
            "suspicion": SUSPICION,
            "verdict": Limits().sql(),
            "confidence": CONFIDENCE,
        }


def statements(reach: Reach) -> Iterator[str]:
    """The statements of `pipeline.sql`, one by one."""
    text = Template((_FOLDER / "pipeline.sql").read_text("utf-8")).substitute(reach.values())
    for part in split_at_semicolons(tokenize(text)):
        yield text[part[0].start : part[-1].end + 1]
