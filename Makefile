# What a newcomer types. `make` alone prints this list.

PREFIX  ?= /usr/local
DESTDIR ?=
CARGO   ?= cargo
# What `make run` hands to l2fwd; nothing: the capture that is built in.
ARGS    ?=

export PREFIX DESTDIR CARGO

.DEFAULT_GOAL := help
.PHONY: help run build test soak install fmt lint doc bench bench-peers clean

help: ## this list
	@echo "Burstline: poll-mode packet drivers."
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20
	@echo
	@echo "First time here: make run"

run: ## l2fwd on the capture that is built in; other arguments: make run ARGS="..."
	$(CARGO) run --release --bin l2fwd $(if $(ARGS),-- $(ARGS))

build: ## library (Rust, .so, .a) and programs, optimised
	$(CARGO) build --release

test: ## everything that must hold, within 20 minutes; as root it installs the tools it lacks
	@scripts/setup-tests.sh
	@scripts/test.sh

soak: ## the long loops (SOAK_SECONDS, SOAK_LOOPS)
	@scripts/soak.sh

install: ## library, headers, pkg-config file and programs to $(DESTDIR)$(PREFIX)
	@scripts/install.sh

fmt: ## lay out the sources
	$(CARGO) fmt

lint: ## layout and lints, warnings are errors
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings

doc: ## API documentation, into target/doc
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --no-deps --lib

bench: ## the benchmarks
	$(CARGO) bench

bench-peers: ## side by side with other packet libraries
	benches/peers/run

clean: ## remove what was built
	$(CARGO) clean
	rm -rf target-asan target-tsan target-loom
