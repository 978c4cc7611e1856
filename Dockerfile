# The image of tailrace: every part is a command of it. `docker build -t tailrace .`
# Small (no compiler, no tests), not root, and at home on a read-only file system: it writes to /data, /tmp and /run/tailrace.
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/tailrace
COPY requirements-image.lock ./
RUN /opt/tailrace/bin/python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-image.lock
COPY . .
RUN /opt/tailrace/bin/python -m pip install --no-cache-dir --disable-pip-version-check --no-deps . \
    && /opt/tailrace/bin/python -m compileall -q /opt/tailrace/lib \
    && /opt/tailrace/bin/python -m pip uninstall --yes pip

FROM python:3.12-slim-bookworm
LABEL org.opencontainers.image.title="tailrace" org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 10001 tailrace \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin tailrace \
    && install --directory --owner=10001 --group=10001 --mode=0700 /data /fleet /run/tailrace
COPY --from=build /opt/tailrace /opt/tailrace
ENV PATH=/opt/tailrace/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TAILRACE_DATA=/data \
    TAILRACE_GATEWAY_DATA=/data/gateway \
    TAILRACE_RUN_DIR=/run/tailrace \
    TAILRACE_LOG=json
WORKDIR /app
USER 10001:10001
VOLUME ["/data"]
STOPSIGNAL SIGTERM
# Of the whole platform (`up`). A part on its own has another address: say so where it is run, as deploy/compose.yaml does.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["tailrace", "health"]
ENTRYPOINT ["tailrace"]
CMD ["up"]
