# Built from the checkout: docker build -t ccq-search .
FROM python:3.12-slim AS build
# python3-dev only for base images whose Python comes without its headers.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && (test -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" \
        || apt-get install --yes --no-install-recommends python3-dev) \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml CMakeLists.txt constraints.txt README.md LICENSE ./
COPY native native
COPY ccq_core ccq_core
COPY service service
COPY ccq_client ccq_client
COPY ccq_cli ccq_cli
RUN python3 -m venv /opt/ccq \
    && /opt/ccq/bin/pip install --no-cache-dir --constraint constraints.txt ".[jwt,otel]" \
    && /opt/ccq/bin/pip uninstall --yes setuptools pip

FROM python:3.12-slim
RUN useradd --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin ccq \
    && install -d -o ccq -m 0750 /data
COPY --from=build /opt/ccq /opt/ccq
ENV PATH=/opt/ccq/bin:$PATH PYTHONUNBUFFERED=1 CCQ_DATA=/data CCQ_HOST=0.0.0.0 CCQ_PORT=8000
USER 10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["ccq", "health"]
ENTRYPOINT ["ccq"]
CMD ["serve"]
