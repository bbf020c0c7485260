# Every command of this repository. `just` lists them; nothing else has to be done before any of them.

set positional-arguments
set shell := ["bash", "-euo", "pipefail", "-c"]

bin := justfile_directory() / ".venv/bin"
export PATH := bin + ":" + env("PATH")
# Or every process of a shell that forbids it would compile every module anew.
export PYTHONDONTWRITEBYTECODE := ""

# list the recipes
[private]
default:
    @just --list --unsorted

# build .venv with everything in it (does nothing when it is current)
setup:
    #!/usr/bin/env bash
    set -euo pipefail
    [ -x .venv/bin/python ] || python3 -m venv .venv
    want=$(python3 -c 'import hashlib, sys; print(hashlib.sha256(b"".join(open(p, "rb").read() for p in sys.argv[1:])).hexdigest())' requirements.lock pyproject.toml)
    if [ "$(cat .venv/.trunkline 2>/dev/null || true)" != "$want" ]; then
        echo "installing the locked packages into .venv (about a minute the first time)" >&2
        .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
        .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
        printf '%s\n' "$want" > .venv/.trunkline
    fi

# start Trunkline: embedded nats-server, all services, a URL (`just up --demo` shows a session without any agent)
up *args: setup
    #!/usr/bin/env bash
    set -euo pipefail
    # Without Node, or without its registry, the gateway has a smaller page.
    if command -v npm > /dev/null; then just web || echo "the app could not be built: a smaller page is served" >&2; fi
    exec trunkline up "$@"

# build the app for browsers into the gateway (does nothing when it is current)
web:
    #!/usr/bin/env bash
    set -euo pipefail
    command -v npm > /dev/null || { echo "the app needs Node 20.19 or newer; without it the gateway has a smaller page" >&2; exit 1; }
    out=$PWD/services/trunkline_gateway/static/app
    cd services/trunkline_web
    want=$(find src public index.html vite.config.ts package-lock.json ../../libs/trunkline_client_ts/src -type f | LC_ALL=C sort | xargs cat | sha256sum)
    if [ "$(cat "$out/.built" 2>/dev/null || true)" != "$want" ]; then
        just web-packages
        npm run --silent build -- --logLevel warn
        printf '%s\n' "$want" > "$out/.built"
    fi

[private]
web-packages:
    #!/usr/bin/env bash
    set -euo pipefail
    cd services/trunkline_web
    want=$(sha256sum < package-lock.json)
    if [ "$(cat node_modules/.installed 2>/dev/null || true)" != "$want" ]; then
        npm ci --silent --ignore-scripts
        printf '%s\n' "$want" > node_modules/.installed
    fi

# check the app's types and run its unit tests
web-check: web-packages
    cd services/trunkline_web && npm run --silent check && npm test --silent

# drive the app in a real Chromium: all of tests/e2e, of which `just test` runs one test
browser *args: setup web
    @pytest -q -m "browser or not browser" tests/e2e "$@"

# make screenshots of the app's main views into tests/e2e/screens/
screens: setup web
    @python -m tests.e2e.screens

# run the tests: everything, with the real agents (`just test tests/unit` for a part)
test *args: setup agents
    #!/usr/bin/env bash
    set -euo pipefail
    if [ $# -gt 0 ]; then exec pytest "$@"; fi
    code=0
    # As they are listed: the many small files of tests/unit come last, so that no core ends alone with a long one.
    pytest -q -n 3 --dist loadfile --no-loadscope-reorder --durations=25 || code=$?
    if [ $code -eq 1 ]; then
        # Two cores run three files and several servers at a time: what failed there has to pass by itself.
        echo "once more, alone: what failed beside other tests" >&2
        pytest -q --last-failed --last-failed-no-failures none
    else
        exit $code
    fi

# compile the tests as pytest does
[private]
bytecode: setup
    @pytest -q --collect-only tests > /dev/null

# run the tests and count the lines they reach, in every process (twice as slow, so not what CI runs)
cover: setup agents
    rm -f .coverage .coverage.*
    pytest -q -n 2 --dist loadfile --cov --cov-report=

# check style, types and import contracts
lint: setup
    ruff check
    ruff format --check
    pyright
    lint-imports

# format the code and mend what can be mended
fmt: setup
    ruff check --fix
    ruff format

# install pinned real agents (cached outside the clone); the live tests run claude and codex (`just agents gemini` for more)
agents *names="claude codex": setup
    @python -m trunkline_testkit.agents install {{names}}

# prove the adapters on the real agents (`just matrix codex gemini`; all without names): writes tests/live/MATRIX.md
matrix *agents: setup
    @python -m tests.live.matrix "$@"

# prove the main behaviours of widespread agents, as CI does (`just matrix` has the whole rows)
smoke *args: setup
    @python -m trunkline_testkit.agents install codex copilot gemini opencode
    @pytest -q -n 3 -m smoke tests/live/matrix "$@"

# audit the app's main views with Lighthouse, on a phone and on a wide screen
audit: setup web
    @cd tests/e2e/lighthouse && npm ci --silent --ignore-scripts
    @python -m tests.e2e.audit

# build the images, run them with Docker Compose, kill every container (without a registry: tests/deploy/stand-ins.sh)
compose-test *args: setup
    @pytest -q -m compose tests/deploy "$@"

# attack it: a thousand kills on one server and on three, then the tests marked long (`just chaos --kills 100 --seed 7`)
chaos *args: setup
    @python -m tests.chaos.soak "$@"
    @pytest -q -m long tests

# attack it for some minutes: the short forms of all chaos suites, as CI runs them
chaos-short *args: setup
    @pytest -q -m "chaos and not long" tests/chaos "$@"

# attack a cluster: three nats-servers in network namespaces, fifty sessions, ten minutes (`just cluster-test --minutes 1`)
cluster-test *args: setup
    @python -m tests.chaos.cluster "$@"

# measure: each figure as a ratio to the limit in the same run (`just bench replay projector` for parts)
bench *args: setup
    @python -m tests.bench "$@"

# write the generated schemas, the Python client's methods and the TypeScript client's types anew (tests compare them)
schema: setup
    #!/usr/bin/env bash
    set -euo pipefail
    python -m trunkline_wire.export
    python -m trunkline_gateway.client_source
    packages=$(python -m tests.node.install libs/trunkline_client_ts)
    made=$(mktemp)
    python -m trunkline_gateway.client_schema | node libs/trunkline_client_ts/generate.mjs "$packages" > "$made"
    cp "$made" libs/trunkline_client_ts/src/generated.ts
    rm "$made"

# write the dashboards and the operator's alerts anew (a test compares them)
dashboards: setup
    @python -m deploy.grafana.generate

# prove dashboards, alerts and traces on the product under load (needs Debian's prometheus)
observe *args: setup
    @pytest -q -m long tests/integration/observability "$@"

# draw what the dashboards show of a run under load, into deploy/grafana/pictures/ (needs Debian's prometheus)
dashboard-pictures *args: setup
    @python -m tests.integration.observability.pictures "$@"

# build the TypeScript client into libs/trunkline_client_ts/dist
client-ts: setup
    @"$(python -m tests.node.install libs/trunkline_client_ts)/node_modules/.bin/tsc" -p libs/trunkline_client_ts

# resolve the dependencies anew into requirements.lock (hashes, no host names)
lock: setup
    uv pip compile -q --upgrade --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --extra dev -o requirements.lock pyproject.toml
    just image-locks

# resolve what the images are made of into deploy/docker, at the versions of requirements.lock
image-locks: setup
    uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11 -c requirements.lock -o deploy/docker/requirements.lock pyproject.toml
    uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11 -c requirements.lock -o deploy/docker/build.lock deploy/docker/build.in
