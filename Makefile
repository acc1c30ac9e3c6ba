# Two commands do for most days: `make run` and `make test`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export CARGO_TARGET_DIR ?= $(CURDIR)/target

SEED ?= 42
KILLS ?= 5000
SERVE_KILLS ?= 100
WORLDS ?= 500000
CASES ?= 20000
ARGS ?=

.PHONY: help run test bench peers sim soak fuzz docs deny setup

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: ## Build the release binary and start the server (ARGS="..." adds options)
	cargo build --release --package cairn-cli --bin cairn
	exec "$(CARGO_TARGET_DIR)/release/cairn" serve $(ARGS)

test: ## Check formatting, lints, tests and generated files; install what they need
	scripts/setup.sh
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo build --workspace --bins
	cargo nextest run --workspace
	cargo test --doc --workspace
	cargo xtask tidy
	scripts/deny.sh
	cargo xtask generate --check

bench: ## Measure the store, guided runs and automations beside the raw limit of this machine
	cargo build --release --package cairn-cli --bin cairn
	cargo run --release --package cairn-bench

peers: ## Run the same ten steps through Cairn, Restate and DBOS, and print one table (RUNS=2000)
	cargo build --release --package cairn-cli --bin cairn
	CAIRN="$(CARGO_TARGET_DIR)/release/cairn" bench/peers/run.sh

sim: ## Run the store, an automation and several engines in a simulated world (SEED=42 picks it)
	cargo run --release --package cairn-sim -- --seed $(SEED)

soak: ## Kill the binary 5,000 times, a busy server 100 times, enumerate more crash states and simulate 500,000 worlds; takes long
	scripts/setup.sh
	CAIRN_KILLS=$(KILLS) CAIRN_SERVE_KILLS=$(SERVE_KILLS) CAIRN_STOPS=50 CAIRN_CRASH_DEPTH=full \
		cargo nextest run --release --profile soak --workspace -E 'binary(kill) | binary(crash) | binary(automations)'
	CAIRN_SEEDS=$(WORLDS) \
		cargo nextest run --release --profile soak --package cairn-sim --test engine

fuzz: ## Run the property tests of core and store with 20,000 cases each
	scripts/setup.sh
	PROPTEST_CASES=$(CASES) \
		cargo nextest run --release --profile soak --package cairn-core --package cairn-store

docs: ## Write the generated reference pages anew
	cargo xtask generate

deny: ## Check licences, advisories and sources of all dependencies
	cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny --version 0.20.2
	cargo deny check

setup: ## Install what the tests need
	scripts/setup.sh
