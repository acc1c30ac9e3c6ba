#!/usr/bin/env bash
# Reads a message and prints what kind it is.
set -euo pipefail
text=$(tr '[:upper:]' '[:lower:]')
case "$text" in
    *bug* | *error* | *crash* | *broken*) verdict=bug ;;
    *'?'* | how* | what*) verdict=question ;;
    *wish* | *add* | *feature*) verdict=feature ;;
    *) verdict=other ;;
esac
printf '{"verdict": "%s", "confidence": 1}\n' "$verdict"
