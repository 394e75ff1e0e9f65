# The operator's image: a plain Debian with the program and its libraries, staged by tools/image/build. No CA bundle:
# the operator trusts the cluster's CA and nothing else.
ARG BASE=docker.io/library/debian:12-slim
FROM ${BASE}
COPY rootfs/ /
USER 65532:65532
ENTRYPOINT ["/usr/bin/evenkeel-operator"]
CMD ["run"]
