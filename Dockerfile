# The service. `make wheels` first makes the build need no network: what lies in build/wheels is then all it installs.

FROM python:3.11-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/build && python -m venv /opt/brain \
    && if [ -d build/wheels ]; then export PIP_NO_INDEX=1 PIP_FIND_LINKS=/src/build/wheels; fi \
    && export PIP_NO_CACHE_DIR=1 PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    && /opt/build/bin/pip install --require-hashes --requirement requirements/build.lock \
    && /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /dist . \
    && /opt/brain/bin/pip install --require-hashes --requirement requirements/runtime.lock \
    && /opt/brain/bin/pip install --no-deps /dist/*.whl

FROM python:3.11-slim
ENV PATH=/opt/brain/bin:$PATH PYTHONUNBUFFERED=1
EXPOSE 8765
ENTRYPOINT ["brain"]
CMD ["serve", "--http"]
RUN useradd --create-home --uid 10001 brain
WORKDIR /home/brain
USER brain
COPY --from=build /opt/brain /opt/brain
