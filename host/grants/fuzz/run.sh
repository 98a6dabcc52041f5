#!/bin/sh
# Runs each fuzz target for FUZZ_SECONDS seconds (180), or only those that are named: run.sh grant address.
# What is found lies in artifacts/TARGET; give such a file to target/…/TARGET to see it again.
#
# The stable compiler can do it: libFuzzer only needs the counters of the coverage pass. cargo-fuzz would add the address
# sanitizer, which needs a nightly compiler and finds nothing in code without unsafe.
set -eu

cd "$(dirname "$0")"
seconds=${FUZZ_SECONDS:-180}
platform=$(rustc -vV | sed -n 's/^host: //p')

# A target given explicitly keeps the flags from build scripts and macros.
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares" \
    cargo build --release --target "$platform" --bins

[ $# -gt 0 ] || set -- grant address request ranges config
for name in "$@"; do
    mkdir -p "corpus/$name" "artifacts/$name"
    echo "== $name for $seconds seconds"
    "target/$platform/release/$name" "corpus/$name" "seeds/$name" \
        -max_total_time="$seconds" -artifact_prefix="artifacts/$name/" -print_final_stats=1 -print_funcs=0 -verbosity=0
done
