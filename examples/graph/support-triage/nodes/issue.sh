#!/usr/bin/env bash
# Prints the issue that a tracker would have made. The same step gets the same number.
set -euo pipefail
printf '{"id": "SUP-%s"}\n' "$((16#${CAIRN_IDEMPOTENCY_KEY:0:4} % 1000))"
