#!/usr/bin/env bash
# Builds deliberately wrong versions, each with one patch of this folder, and plays seeds with it until an invariant breaks.
# A version that breaks nothing within SEEDS seeds is a hole in the fault simulation. run.sh [NAME…]
#
# Everything happens in a copy of the tree, target/mutants, which shares what is built of outside libraries. The copy is kept,
# so that each further version builds only what its patch touches and what depends on that. SECONDS_EACH bounds one version.
set -euo pipefail
cd "$(dirname "$0")/../../.."
seeds=${SEEDS:-200}
bound=${SECONDS_EACH:-1800}
root=$PWD
patches=$root/tests/simulation/mutants
tree=$root/target/mutants
export CARGO_TARGET_DIR=$root/target

# DEBUG=1 builds without optimizing, which is faster where little is played.
profile=--release soak=$CARGO_TARGET_DIR/release/soak
[ -z "${DEBUG:-}" ] || { profile= soak=$CARGO_TARGET_DIR/debug/soak; }

[ $# -gt 0 ] || set -- $(cd "$patches" && ls ./*.patch | sed 's|^\./||; s|\.patch$||')

# Brings the copy up to date; what did not change keeps its time, lest it be built again.
mkdir -p "$tree"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
git ls-files --cached --others --exclude-standard -z > "$list"
while IFS= read -r -d '' file; do
    [ -f "$file" ] || continue
    cmp -s "$file" "$tree/$file" || { mkdir -p "$tree/$(dirname "$file")" && cp "$file" "$tree/$file"; }
done < "$list"
(cd "$tree" && find . -type f | sed 's|^\./||') | while IFS= read -r file; do
    [ -e "$root/$file" ] || rm -f "$tree/$file"
done

missed=0
for name in "$@"; do
    patch --quiet --dry-run -d "$tree" -p1 < "$patches/$name.patch" >/dev/null \
        || { echo "STALE  $name: the patch does not fit any more"; missed=$((missed + 1)); continue; }
    patch --quiet --no-backup-if-mismatch -d "$tree" -p1 < "$patches/$name.patch"
    status=0
    (cd "$tree" && timeout "$bound" "${CARGO:-cargo}" build $profile --quiet --workspace --bin soak) \
        || status=broken
    if [ "$status" = 0 ]; then
        out=$(timeout "$bound" "$soak" --seeds "$seeds" --fail-fast --shrink 0 \
            --cache "$root/target/soak-cache") || status=$?
    fi
    case $status in
        broken) echo "BROKEN $name: it does not build in ${bound}s"; missed=$((missed + 1)) ;;
        0) echo "MISSED $name: nothing broke within $seeds seeds"; missed=$((missed + 1)) ;;
        1) echo "caught $name: $(head -1 <<< "$out")" ;;
        *) echo "BROKEN $name: the run ended with status $status"; missed=$((missed + 1)) ;;
    esac
    patch --quiet --no-backup-if-mismatch -R -d "$tree" -p1 < "$patches/$name.patch"
done
# The binary of the last wrong version must not be taken for the right one.
rm -f "$soak"
exit $((missed > 0))
