#!/bin/sh
# Runs fuzz targets for FUZZ_SECONDS seconds each (180): fuzz.sh FOLDER [TARGET…], such as fuzz.sh host/grants/fuzz grant.
# Without names, every target that has a folder of seeds. What is found lies in FOLDER/artifacts/TARGET; give such a file to
# FOLDER/target/…/TARGET to see it again.
#
# The stable compiler can do it: libFuzzer only needs the counters of the coverage pass. cargo-fuzz would add the address
# sanitizer, which needs a nightly compiler and finds nothing in code without unsafe.
set -eu

[ $# -gt 0 ] && [ -f "$1/Cargo.toml" ] || { echo "fuzz.sh FOLDER [TARGET...]: FOLDER holds the fuzz targets" >&2; exit 2; }
cd "$1"
shift
seconds=${FUZZ_SECONDS:-180}
platform=$(rustc -vV | sed -n 's/^host: //p')

# A target given explicitly keeps the flags from build scripts and macros.
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares" \
    cargo build --release --target "$platform" --bins

[ $# -gt 0 ] || set -- $(ls seeds)
for name in "$@"; do
    mkdir -p "corpus/$name" "artifacts/$name"
    echo "== $name for $seconds seconds"
    "target/$platform/release/$name" "corpus/$name" "seeds/$name" \
        -max_total_time="$seconds" -artifact_prefix="artifacts/$name/" -print_final_stats=1 -print_funcs=0 -verbosity=0
done
