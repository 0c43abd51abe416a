"""Online data mining: operators that find structure in streams, in one pass and bounded memory.

Each operator is a plain class that takes arrays; statements use it in FROM through a table
function. `registry` lists all functions. What operators need beyond numpy is installed with
``pip install 'nilometer[mining]'`` and imported when it is used.

>>> from nilometer.mining import Periodicity
>>> series = Periodicity(longest=10)
>>> series.add(["a", "b", "c"] * 20)
>>> series.periods()[0].period
3
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from nilometer.mining.registry import find_function

if TYPE_CHECKING:
    from nilometer.mining.frequent_sequences import FrequentSequences
    from nilometer.mining.line_fit import LineFit
    from nilometer.mining.motif_finder import MotifFinder
    from nilometer.mining.online_clusters import OnlineClusters
    from nilometer.mining.partial_patterns import PartialPatterns
    from nilometer.mining.pattern_classifier import PatternClassifier
    from nilometer.mining.periodicity import Periodicity
    from nilometer.mining.running_total import RunningTotal
    from nilometer.mining.shape_matcher import ShapeMatcher
    from nilometer.mining.spectrum_peaks import SpectrumPeaks

__all__ = [
    "FrequentSequences",
    "LineFit",
    "MotifFinder",
    "OnlineClusters",
    "PartialPatterns",
    "PatternClassifier",
    "Periodicity",
    "RunningTotal",
    "ShapeMatcher",
    "SpectrumPeaks",
]

_PLACES: Final = {
    "FrequentSequences": ("frequent_sequences", "SEQUENCES"),
    "LineFit": ("line_fit", "LINES"),
    "MotifFinder": ("motif_finder", "MOTIFS"),
    "OnlineClusters": ("online_clusters", "CLUSTERS"),
    "PartialPatterns": ("partial_patterns", "PATTERNS"),
    "PatternClassifier": ("pattern_classifier", "CLASSIFY"),
    "Periodicity": ("periodicity", "PERIODS"),
    "RunningTotal": ("running_total", "ACCUMULATE"),
    "ShapeMatcher": ("shape_matcher", "MATCHES"),
    "SpectrumPeaks": ("spectrum_peaks", "PEAKS"),
}
"""The module of an operator, and its table function, which says what has to be installed."""


def __getattr__(name: str) -> Any:
    """The operators, each imported on first use; raises an error if its packages are missing."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, function = _PLACES[name]
    find_function(function)
    return getattr(import_module(f"{__name__}.{module}"), name)
