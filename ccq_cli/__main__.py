"""`python -m ccq_cli` is `ccq`."""

from ccq_cli.main import main

main()
