"""Made of `ccq_client._async` by `make client`."""
