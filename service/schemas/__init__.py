"""What requests and replies look like: the public contract, from which the OpenAPI document is made."""
