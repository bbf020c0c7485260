#!/usr/bin/env bash
# Makes stand-ins for the base images, and for Prometheus and Alertmanager, where no registry of images is reachable, out of
# Debian's packages, this machine's Node and the nats-server of .venv. Prints the variables that `just compose-test` and `docker compose build` take.
#
#   eval "$(tests/deploy/stand-ins.sh)"
#
# Needs root, a running Docker, debootstrap, busybox-static, node and npm. This machine's certificates go into the stand-ins.
set -euo pipefail

name=trunkline-stand-in
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec 3>&1 1>&2
certificates=/etc/ssl/certs/ca-certificates.crt
variables="SSL_CERT_FILE=$certificates PIP_CERT=$certificates NODE_EXTRA_CA_CERTS=$certificates"

made() { docker image inspect "$name:$1" > /dev/null 2>&1; }

if ! made debian; then
    debootstrap --variant=minbase --include=ca-certificates bookworm "$work/debian" > /dev/null
    cp "$certificates" "$work/debian$certificates"
    tar -C "$work/debian" -c . | docker import -c "ENV $variables" - "$name:debian"
fi
if ! made python; then
    DOCKER_BUILDKIT=1 docker build --network host -t "$name:python" - << END
FROM $name:debian
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv python3-pip \\
    && rm -rf /usr/lib/python3.11/EXTERNALLY-MANAGED /var/lib/apt/lists/* && ln -s /usr/bin/python3 /usr/local/bin/python
END
fi
if ! made node; then
    mkdir -p "$work/node/lib/node_modules" "$work/node/bin"
    cp -L "$(command -v node)" "$work/node/bin/node"
    cp -RL "$(dirname "$(readlink -f "$(command -v npm)")")/.." "$work/node/lib/node_modules/npm"
    DOCKER_BUILDKIT=1 docker build -t "$name:node" -f - "$work/node" << END
FROM $name:debian
COPY . /usr/local/
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
END
fi
if ! made nats; then
    mkdir -p "$work/nats/bin" "$work/nats/tmp"
    cp "$(dirname "$0")/../../.venv/bin/nats-server" "$(command -v busybox)" "$work/nats/bin/"
    ln -s busybox "$work/nats/bin/wget"
    tar -C "$work/nats" -c . | docker import -c "ENV PATH=/bin" - "$name:nats"
fi
# As their makers' images are: nobody's, with a directory for what they keep. Debian has neither Grafana, a collector nor Jaeger.
for program in prometheus alertmanager; do
    made "$program" && continue
    if [ "$program" = prometheus ]; then package=prometheus; else package=prometheus-$program; fi
    DOCKER_BUILDKIT=1 docker build --network host -t "$name:$program" - << END
FROM $name:debian
RUN apt-get update && apt-get install -y --no-install-recommends $package && rm -rf /var/lib/apt/lists/* \\
    && install -d -o nobody -g nogroup /$program
USER nobody
WORKDIR /$program
ENTRYPOINT ["/usr/bin/$package"]
END
done
for image in python node nats prometheus alertmanager; do echo "export ${image^^}_IMAGE=$name:$image" >&3; done
echo "export TRUNKLINE_BUILD_NETWORK=host" >&3
