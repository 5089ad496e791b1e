"""The REST service: FastAPI over SQLite and code tables in memory. Imports `ccq_core`, never the other way."""
