# The trainer's image for CPUs: a plain Debian with the program and its libraries, staged by tools/image/build.
ARG BASE=docker.io/library/debian:12-slim
FROM ${BASE}
COPY rootfs/ /
USER 65532:65532
ENTRYPOINT ["/usr/bin/evenkeel-trainer"]
