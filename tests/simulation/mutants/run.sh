#!/usr/bin/env bash
# Builds deliberately wrong versions, each with one patch of this folder, and plays seeds with it until an invariant breaks.
# A version that breaks nothing within SEEDS seeds is a hole in the fault simulation. run.sh [NAME…]
set -euo pipefail
cd "$(dirname "$0")/../../.."
seeds=${SEEDS:-200}
root=$PWD
tree=$root/target/mutants
export CARGO_TARGET_DIR=$root/target

[ $# -gt 0 ] || set -- $(cd tests/simulation/mutants && ls ./*.patch | sed 's|^\./||; s|\.patch$||')
missed=0
for name in "$@"; do
    rm -rf "$tree"
    mkdir -p "$tree"
    git ls-files -z | xargs -0 cp --parents -t "$tree"
    patch --quiet -d "$tree" -p1 < "tests/simulation/mutants/$name.patch"
    (cd "$tree" && cargo build --release --quiet --workspace --bin soak)
    if out=$("$root/target/release/soak" --seeds "$seeds" --fail-fast --shrink 0 --cache "$root/target/soak-cache"); then
        echo "MISSED $name: nothing broke within $seeds seeds"
        missed=$((missed + 1))
    else
        echo "caught $name: $(head -1 <<< "$out")"
    fi
done
rm -rf "$tree"
# The binary of the last wrong version must not be taken for the right one.
rm -f "$root/target/release/soak"
exit $((missed > 0))
