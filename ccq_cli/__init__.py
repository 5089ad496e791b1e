"""The command line, `ccq`."""
