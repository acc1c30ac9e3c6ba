#!/usr/bin/env bash
# Stands in for a service that lists what is new.
set -euo pipefail
printf '{"name": "%s", "items": ["first of %s", "second of %s"]}\n' "$1" "$1" "$1"
