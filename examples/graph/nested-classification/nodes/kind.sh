#!/usr/bin/env bash
if grep -qi "how"; then echo '{"kind": "how-to"}'; else echo '{"kind": "bug-report"}'; fi
