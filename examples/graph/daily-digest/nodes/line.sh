#!/usr/bin/env bash
# Prints how many items a source has.
set -euo pipefail
printf '%s: %s new\n' "$NAME" "$(grep -o '"[^"]*"' | wc -l)"
