#!/bin/sh
# Run inside the image: is it non-root, does it start, answer its health check and serve a search?
#   docker run --rm --entrypoint sh -v ./docker/smoke.sh:/smoke.sh:ro ccq-search /smoke.sh
set -eu
[ "$(id -u)" != 0 ] || { echo "smoke: runs as root"; exit 1; }
CCQ_OPEN=true ccq serve --port 8000 &  # the image listens on all addresses
server=$!
for _ in $(seq 60); do
    kill -0 "$server" || { echo "smoke: the service ended"; exit 1; }
    if ccq health >/dev/null 2>&1; then break; fi
    sleep 0.5
done
ccq health
kill -0 "$server"  # it is this service that answered
# The demo starts a service of its own on a free port, and searches it in every direction.
ccq demo
kill "$server"
wait "$server"
echo "smoke: uid $(id -u), health, index and search are fine"
