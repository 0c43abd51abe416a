"""The papers' algorithms, one tuple at a time, as the papers describe them.

They are counted and timed to repeat the papers' experiments, and can be hosted in a query instead
of the columnar operators. `registry.ALGORITHMS` has them by name; each is in its own file. Where a
paper contradicts itself or gives wrong results, docs/errata.md says what was done.
"""
