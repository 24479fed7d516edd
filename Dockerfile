# The service. `make wheels` first makes the build need no network: what lies in build/wheels is then all it installs.

FROM python:3.11-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/brain \
    && if [ -d build/wheels ]; then export PIP_NO_INDEX=1 PIP_FIND_LINKS=/src/build/wheels; fi \
    && /opt/brain/bin/pip install --no-cache-dir --require-hashes --requirement requirements/runtime.lock \
    && /opt/brain/bin/pip install --no-cache-dir --no-deps .

FROM python:3.11-slim
RUN useradd --create-home --uid 10001 brain
COPY --from=build /opt/brain /opt/brain
ENV PATH=/opt/brain/bin:$PATH PYTHONUNBUFFERED=1
USER brain
WORKDIR /home/brain
EXPOSE 8765
ENTRYPOINT ["brain"]
CMD ["serve", "--http"]
