#!/usr/bin/env bash
echo '{"latency_ms": 240}'
