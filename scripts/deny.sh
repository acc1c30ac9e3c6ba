#!/usr/bin/env bash
# Checks licences, bans, sources and advisories with cargo-deny, as far as it can be had here.
#
# `cargo xtask tidy` checks the same by itself, advisories by the copy in xtask/advisories.txt, so
# nothing is left unchecked without cargo-deny or the network; what is missing is said.
set -euo pipefail

cd "$(dirname "$0")/.."
copy=$(sed -n 's/^# The database of \([0-9-]*\).*/\1/p' xtask/advisories.txt)

say() { printf 'deny: %s\n' "$*"; }

if ! cargo deny --version >/dev/null 2>&1; then
    say "cargo-deny is not installed (\`make deny\` installs it); tidy used the advisories of $copy"
    exit 0
fi
cargo deny --offline check licenses bans sources
if cargo deny fetch db >/dev/null 2>&1; then
    cargo deny check advisories
else
    say "the latest advisories cannot be fetched; tidy used those of $copy"
fi
