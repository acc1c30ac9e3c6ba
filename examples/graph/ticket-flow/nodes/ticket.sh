#!/usr/bin/env bash
printf 'Ticket: %s\n' "$TITLE"
