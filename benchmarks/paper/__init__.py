"""The experiments of the paper (Long, Cao, Wang, Yu, SIGIR 2016, section 5): `python -m benchmarks.paper --help`."""
