"""HTTP paths. Each route only turns a request into a function call, and its result into a response."""
