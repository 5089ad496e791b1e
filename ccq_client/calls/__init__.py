"""The requests of every verb, described once for both clients: what to send, and what a reply means."""
