#!/usr/bin/env bash
# The same ten-step run through Cairn, Restate and DBOS, each through its own HTTP door, with one
# load generator, one after another. What cannot be installed is said and left out.
# Everything stays below bench/out/peers. RUNS=2000 says how many runs each does.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
cairn=${CAIRN:-$here/../../target/release/cairn}
runs=${RUNS:-2000}
out=$here/../out/peers
mkdir -p "$out"
started=()
stop() { for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done; }
trap stop EXIT

say() { printf '%s\n' "$*" >&2; }
until_answers() { for _ in $(seq 300); do curl -fso /dev/null "$1" && return 0; sleep 0.1; done; return 1; }

printf '%-10s %12s %10s %10s %14s %14s\n' '' 'runs/s at 64' 'p50 ms' 'p99 ms' 'alone p50 ms' 'CPU ms a run'

if [ -x "$cairn" ]; then
    place=$(mktemp -d "$out/cairn.XXXX")
    mkdir "$place/workflows"
    {
        printf 'name: ten\nrate_limit: 10000000/min\nconcurrency: 1000\nenv:\n  - { name: SIGN, widget: secret }\n'
        printf 'triggers:\n  - { id: hook, type: webhook, path: /ten, secret: SIGN, signature: github, respond: last_step }\ngraph:\n  nodes:\n'
        for step in 0 1 2 3 4 5 6 7 8; do printf '    - { id: s%s, type: log, message: x, next: s%s }\n' "$step" "$((step + 1))"; done
        printf '    - { id: s9, type: log, message: x }\n'
    } >"$place/workflows/ten.yaml"
    export CAIRN_HOME=$place/home CAIRN_MASTER_KEY_FILE=$place/master.key
    (cd "$place" && printf 'a-secret-of-the-bench' | "$cairn" secret set SIGN >/dev/null)
    (cd "$place" && exec "$cairn" serve --listen 127.0.0.1:17373 >"$place/log" 2>&1) &
    started+=($!); cairn_pid=$!
    until_answers http://127.0.0.1:17373/readyz
    node load.mjs Cairn http://127.0.0.1:17373/hooks/ten "$runs" "$cairn_pid" --secret a-secret-of-the-bench
    kill "$cairn_pid"; wait "$cairn_pid" 2>/dev/null || true
else
    say "Cairn is left out: $cairn is not there; \`cargo build --release --package cairn-cli\` makes it"
fi

if cp package.json "$out/" && npm install --prefix "$out" --silent --no-package-lock --ignore-scripts --no-audit --no-fund >&2; then
    cp restate.mjs "$out/"
    (cd "$out" && exec node restate.mjs 19080) & started+=($!); service=$!
    place=$(mktemp -d "$out/restate.XXXX")
    # The launcher starts the program; the program itself is measured.
    server=$(ls -d "$out"/node_modules/@restatedev/restate-server-linux-*/bin/restate-server | head -1)
    (cd "$place" && exec "$server" --base-dir "$place" >"$place/log" 2>&1) & started+=($!); restate=$!
    until_answers http://127.0.0.1:9070/health
    curl -fso /dev/null http://127.0.0.1:9070/deployments -H 'content-type: application/json' -d '{"uri": "http://127.0.0.1:19080"}'
    node load.mjs Restate http://127.0.0.1:8080/ten/run "$runs" "$restate" "$service" --key-header idempotency-key
    kill "$restate" "$service"
else
    say 'Restate is left out: its npm packages cannot be installed here'
fi

if python3 -m venv "$out/python" && "$out/python/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt >&2; then
    place=$(mktemp -d "$out/dbos.XXXX")
    (cd "$place" && exec "$out/python/bin/python" "$here/dbos_app.py" 18000 >"$place/log" 2>&1) & started+=($!); dbos=$!
    until_answers http://127.0.0.1:18000/healthz
    node load.mjs DBOS http://127.0.0.1:18000/ten "$runs" "$dbos"
    kill "$dbos"
else
    say 'DBOS is left out: its pip package cannot be installed here'
fi
