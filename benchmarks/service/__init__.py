"""What the service is measured with: a large data directory, and a script for wrk."""
