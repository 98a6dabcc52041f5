# Two commands: `make demo` and `make test`. Both set up what they need.

SHELL := bash
CARGO ?= cargo
DEMO_ARGS ?=

.PHONY: demo test lint components vectors docs setup honesty

setup:
	@scripts/wasm-toolchain.sh

demo: setup
	$(CARGO) run --quiet -p plimsoll -- demo $(DEMO_ARGS)

test: setup
	$(CARGO) test --workspace --no-fail-fast
	@tests/clouds/honesty/run.sh

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny --offline check bans licenses sources; \
	else echo "cargo-deny is not installed; licences and bans were not checked"; fi

components: setup
	$(CARGO) run --quiet -p plimsoll-bundled --bin components

vectors: setup
	$(CARGO) run --release -p plimsoll-tests-vectors -- tests/vectors/cases/*

# The vendors' own SDKs drive the fake clouds.
honesty:
	HONESTY=required tests/clouds/honesty/run.sh

docs:
	$(CARGO) run --quiet -p plimsoll -- flags > docs/flags.md
