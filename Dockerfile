# The image of Larder. docs/containers.md shows how to use it.
#
#   docker build -t larder .                                         builds the package too, which takes minutes
#   docker build -t larder --build-context package=.build/deb .      takes the one that `make deb` has built
#   make image                                                       does the same without an engine, by buildah
ARG BASE=docker.io/library/debian:bookworm-slim

# The Debian package, alone in a folder.
FROM docker.io/library/swift:6.3-bookworm AS build
COPY . /source
WORKDIR /source
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends make && make deb

FROM scratch AS package
COPY --from=build /source/.build/deb/ /

FROM ${BASE}
# For arbitrary users (OpenShift), who are in the group 0, the store's folder belongs to this group. The user comes before the package, so that
# its number is known. Without a config, LARDER_UPSTREAM or LARDER_PRESET names the API.
RUN --mount=type=bind,from=package,target=/package \
    groupadd --system --gid 8787 larder \
    && useradd --system --uid 8787 --gid 8787 --home-dir /var/lib/larder --no-create-home --shell /usr/sbin/nologin larder \
    && apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        ca-certificates systemd-standalone-sysusers /package/larder_*.deb \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache \
        /var/log/*.log /var/log/apt /etc/larder/larder.yaml /lib/systemd/system/larder.* \
    && install -d -o 8787 -g 0 -m 0770 /var/lib/larder

# Where the store is, and that programs of other containers reach Larder. What the config or a flag says comes first.
ENV STATE_DIRECTORY=/var/lib/larder LARDER_BIND=0.0.0.0
VOLUME /var/lib/larder
EXPOSE 8787 8788
# By number, so that Kubernetes knows that it is not root.
USER 8787:8787
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["larder", "status", "--ready"]
ENTRYPOINT ["larder"]
CMD ["serve"]
