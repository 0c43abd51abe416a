"""Every experiment that the papers report, repeated: one module for each figure or table.

An experiment measures, draws, and judges the paper's claims on what it measured. It says what
it found, also where a claim does not hold here.
"""
