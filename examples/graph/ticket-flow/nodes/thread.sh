#!/usr/bin/env bash
echo '{"messages": ["It fails", "Since when?", "Since today"]}'
