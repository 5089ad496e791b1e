"""Processes that answer searches beside the server, each with a copy of all codes in its memory."""
