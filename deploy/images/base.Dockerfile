# What all images share, in two stages that are images of their own:
#
#   docker build -f deploy/images/base.Dockerfile --target build   -t stairwise/build:0.1.0   .
#   docker build -f deploy/images/base.Dockerfile --target runtime -t stairwise/runtime:0.1.0 .
#
# A service's Dockerfile installs its extra in the first and copies the result into the second.

ARG PYTHON=3.11-slim-bookworm

# The project as a wheel, and `install-service`, which makes an environment of it and one extra.
FROM python:${PYTHON} AS build
WORKDIR /build
COPY requirements.lock ./
# uv checks the hashes of the lock where it is given as constraints; pip can do that only without extras.
RUN pip install --no-cache-dir "$(grep -oE '^uv==[0-9.]+' requirements.lock)" \
    && uv pip install --system --no-cache --constraint requirements.lock grpcio-tools hatchling
COPY pyproject.toml README.md ./
COPY protos protos
COPY libs libs
COPY services services
RUN mkdir -p libs/stairwise/v1 \
    && touch libs/stairwise/v1/__init__.py \
    && python -m grpc_tools.protoc -Iprotos --python_out=libs --grpc_python_out=libs protos/stairwise/v1/*.proto \
    && uv build --wheel --no-build-isolation --out-dir dist
COPY --chmod=755 deploy/images/install-service /usr/local/bin/

# Where a service runs: as nobody in particular, able to write to /tmp and its state directory alone.
FROM python:${PYTHON} AS runtime
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin stairwise \
    && install --directory --owner stairwise --group stairwise /var/lib/stairwise
ENV PATH=/opt/stairwise/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    STAIRWISE_DIR=/var/lib/stairwise
WORKDIR /var/lib/stairwise
USER 10001:10001
# Asks the service by the gRPC health protocol. Kubernetes does so itself and does not look at this.
HEALTHCHECK --interval=15s --timeout=10s --start-period=120s \
    CMD ["python", "-P", "-m", "stairwise.platform.healthcheck"]
