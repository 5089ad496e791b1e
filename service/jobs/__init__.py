"""Work that takes longer than a request may: one job at a time, and again after a restart."""
