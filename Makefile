# Two commands: `make demo` and `make test`. Both set up what they need.

SHELL := bash
SEEDS ?= 1000
CARGO ?= cargo
BENCH_ARGS ?=
DEMO_ARGS ?=

.PHONY: bench demo e2e e2e-long manifests fuzz release soak test lint components refresh-time vectors mutants openb openb-replay seeds honesty docs picture setup

setup:
	@scripts/wasm-toolchain.sh

demo: setup
	$(CARGO) run -p plimsoll -- demo $(DEMO_ARGS)

test: setup
	$(CARGO) test --workspace --no-fail-fast
	@tests/clouds/honesty/run.sh
	@tests/e2e/tests/run.sh

# Chart, manifests and fake nodes against a real Kubernetes control plane (needs Go; the first time, ten minutes more).
# E2E_ARGS: names of tests.
E2E_ARGS ?=
e2e: setup
	E2E=required tests/e2e/tests/run.sh $(E2E_ARGS)

# The program itself there: up and down, kills, an API server in trouble, rights, the peer's manifests, 1,000 nodes.
e2e-long: setup
	E2E=required tests/e2e/tests/run.sh long $(E2E_ARGS)

# The plain manifests in deploy/manifests, from the chart.
manifests:
	deploy/render.sh

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny --offline check bans licenses sources; \
	else echo "cargo-deny is not installed; licences and bans were not checked"; fi

components: setup
	$(CARGO) run --quiet -p plimsoll-bundled --bin components

# Every optimized program at once: with another choice of packages the same libraries would be compiled again.
release: setup
	$(CARGO) build --release --quiet --workspace --bins

vectors: release
	target/release/vectors tests/vectors/cases/*

# The providers against the fakes of their clouds, each test under a hundred seeds; debug builds take fewer.
seeds:
	$(CARGO) test --release --workspace --test fake

# The real loop and components against a cluster and a cloud in which everything fails: 24 virtual hours for each seed.
soak: release
	target/release/soak --seeds $(SEEDS)

# How long a refresh of MACHINES machines keeps the component of AliCloud busy, without the network; prints JSON.
MACHINES ?= 1500
refresh-time: setup
	$(CARGO) build --release --quiet --workspace --example refresh-time
	target/release/examples/refresh-time $(MACHINES)

# Fuzzes the parsers that stand between a plug-in and the network, and the reader of objects, each for FUZZ_SECONDS, on the
# stable compiler.
FUZZ_SECONDS ?= 180
fuzz: setup
	FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh host/grants/fuzz
	FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh host/model/fuzz

# The vendors' own SDKs drive the fake clouds.
honesty:
	HONESTY=required tests/clouds/honesty/run.sh

docs:
	$(CARGO) run --quiet -p plimsoll -- flags > docs/flags.md
	$(CARGO) run --quiet -p plimsoll -- metrics > docs/metrics.md

# The picture of the demo in the README; needs tmux.
picture: setup
	$(CARGO) build --quiet -p plimsoll
	scripts/demo-svg.py docs/demo.svg

# The openb trace: DATA is the folder with nodes.csv and pods.csv.
openb: release
	@test -n "$(DATA)" || { echo "make openb DATA=FOLDER: the folder that holds nodes.csv and pods.csv" >&2; exit 2; }
	target/release/openb $(DATA)/nodes.csv $(DATA)/pods.csv target/openb.json --lower-bound
	target/release/plimsoll simulate target/openb.json --expander=least-waste --output json > target/openb-plan.json
	target/release/check-plan target/openb-plan.json target/openb.json

# The openb trace by its times of arrival and departure, on the simulated cloud; some minutes. REPLAY_ARGS=--help tells more.
REPLAY_ARGS ?=
openb-replay: release
	@test -n "$(DATA)" || { echo "make openb-replay DATA=FOLDER: the folder that holds nodes.csv and pods.csv" >&2; exit 2; }
	target/release/openb-replay $(DATA)/nodes.csv $(DATA)/pods.csv $(REPLAY_ARGS)

# Wrong versions of the core, each of which the fault simulation must catch; WRONG names some. An hour for all.
WRONG ?=
mutants: setup
	tests/simulation/mutants/run.sh $(WRONG)

# Times the loop on generated clusters, and whole turns with churn; BENCH_ARGS=--help tells more. Writes target/bench.json.
bench: release
	target/release/bench $(BENCH_ARGS)
	target/release/churn
