#!/bin/sh
# Runs the fuzz target for FUZZ_SECONDS seconds (180), on the stable compiler as host/grants/fuzz/run.sh does.
# What is found lies in artifacts/objects; give such a file to target/…/objects to see it again.
set -eu

cd "$(dirname "$0")"
seconds=${FUZZ_SECONDS:-180}
platform=$(rustc -vV | sed -n 's/^host: //p')

RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares" \
    cargo build --release --target "$platform" --bins

mkdir -p corpus/objects artifacts/objects
echo "== objects for $seconds seconds"
"target/$platform/release/objects" corpus/objects seeds/objects \
    -max_total_time="$seconds" -artifact_prefix=artifacts/objects/ -print_final_stats=1 -verbosity=0
