"""`python -m benchmarks.paper`."""

from benchmarks.paper.main import main

if __name__ == "__main__":
    main(prog_name="python -m benchmarks.paper")
