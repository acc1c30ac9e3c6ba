#!/usr/bin/env bash
# Installs what `make test` needs beside Rust, and says what it installs.
# When nothing is missing it changes nothing and needs no network.
set -euo pipefail

nextest_version=0.9.143

cd "$(dirname "$0")/.."
clients="${CARGO_TARGET_DIR:-target}/clients"

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif has sudo; then
        sudo "$@"
    else
        fail "needs root for: $*; run that as root, then try again"
    fi
}

# A command that tests call, and the Debian package that brings it.
missing=()
has cc || missing+=(gcc libc6-dev)
has strace || missing+=(strace)
python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=(python3 python3-venv)
has npm || missing+=(npm)
has openssl || missing+=(openssl)

if [ "${#missing[@]}" -gt 0 ]; then
    has apt-get || fail "missing: ${missing[*]}; install them with your package manager"
    say "installing with apt-get: ${missing[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

has cargo || fail "cargo is missing; install Rust 1.95 or later"
cargo fmt --version >/dev/null 2>&1 ||
    fail "rustfmt is missing; run: rustup component add rustfmt"
cargo clippy --version >/dev/null 2>&1 ||
    fail "clippy is missing; run: rustup component add clippy"

if ! cargo nextest --version >/dev/null 2>&1; then
    say "installing with cargo: cargo-nextest $nextest_version (takes some minutes, once)"
    # Without its self-updater it needs no TLS library to build.
    cargo install --locked cargo-nextest --version "$nextest_version" \
        --no-default-features --features default-no-update
fi

# MCP clients that are not ours, for the tests in crates/cli/tests/clients. They stay in the
# target directory. A stamp says which versions are there.
wanted=crates/cli/tests/clients

if ! cmp -s "$wanted/requirements.txt" "$clients/python/installed.txt"; then
    say "installing with pip into $clients/python: $(grep '^mcp=' "$wanted/requirements.txt")"
    rm -rf "$clients/python"
    python3 -m venv "$clients/python"
    "$clients/python/bin/pip" install --quiet --disable-pip-version-check --no-deps \
        --requirement "$wanted/requirements.txt"
    cp "$wanted/requirements.txt" "$clients/python/installed.txt"
fi

if ! cmp -s "$wanted/package.json" "$clients/node/installed.json"; then
    say "installing with npm into $clients/node: the MCP inspector, the conformance suite, Node"
    rm -rf "$clients/node"
    mkdir -p "$clients/node"
    cp "$wanted/package.json" "$clients/node/package.json"
    npm install --prefix "$clients/node" --silent --no-package-lock --ignore-scripts \
        --no-audit --no-fund
    cp "$wanted/package.json" "$clients/node/installed.json"
fi

# The reference library of Standard Webhooks, which signs requests in the tests of
# crates/triggers.
webhooks=crates/triggers/src/webhook/tests/requirements.txt

if ! cmp -s "$webhooks" "$clients/webhooks/installed.txt"; then
    say "installing with pip into $clients/webhooks: $(cat "$webhooks")"
    rm -rf "$clients/webhooks"
    python3 -m venv "$clients/webhooks"
    "$clients/webhooks/bin/pip" install --quiet --disable-pip-version-check --no-deps \
        --requirement "$webhooks"
    cp "$webhooks" "$clients/webhooks/installed.txt"
fi
