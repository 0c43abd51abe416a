"""The papers' algorithms, one tuple at a time, as the papers describe them.

They are counted and timed to repeat the papers' experiments, and can be hosted in a query in the
place of the columnar operators. `registry.ALGORITHMS` has them by name; each is in a file of its
own. Where a paper contradicts itself or gives wrong results, docs/errata.md says what was done.
"""
