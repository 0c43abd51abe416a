"""The version of Nilometer, the same on driver and workers."""

from typing import Final

VERSION: Final = "0.1.0"
