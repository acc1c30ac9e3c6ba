#!/usr/bin/env bash
echo restarted the worker
