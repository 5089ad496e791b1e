"""Comparisons that are no part of the package: run from the root of a checkout as `python -m benchmarks.NAME`."""
