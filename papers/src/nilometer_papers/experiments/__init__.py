"""Every experiment that the papers report, repeated: one module for each figure or table.

An experiment measures, draws, and judges the paper's claims on its measurements. It reports what it
found, including claims that do not hold here.
"""
