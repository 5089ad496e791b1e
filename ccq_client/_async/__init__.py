"""The clients, written once, as coroutines; `make client` makes `ccq_client._sync` of it."""
