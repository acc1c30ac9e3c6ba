#!/usr/bin/env bash
# Installs what `make test` needs beside Rust, and says what it installs.
# When nothing is missing it changes nothing and needs no network.
set -euo pipefail

nextest_version=0.9.143

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
