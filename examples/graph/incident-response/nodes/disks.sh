#!/usr/bin/env bash
set -euo pipefail
printf '{"free_percent": %s}\n' "$(df --output=pcent / | tail -1 | tr -dc 0-9)"
