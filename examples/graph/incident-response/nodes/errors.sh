#!/usr/bin/env bash
echo '{"count": 3}'
