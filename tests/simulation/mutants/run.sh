#!/usr/bin/env bash
# Builds deliberately wrong versions, each with one patch of this folder, and plays seeds with it until an invariant breaks.
# A version that breaks nothing within SEEDS seeds is a hole in the fault simulation. run.sh [NAME…]
#
# Everything happens in a copy of the tree, target/mutants, which shares what is built of outside libraries. The copy is kept,
# so that each further version builds only what its patch touches and what depends on that; that is optimized less than in a
# release, which builds in a fraction of the time and decides the same. While one version is played, the next one is built. SECONDS_EACH bounds the build of a version, and the play of it.
set -euo pipefail
cd "$(dirname "$0")/../../.."
seeds=${SEEDS:-200}
bound=${SECONDS_EACH:-1800}
root=$PWD
patches=$root/tests/simulation/mutants
tree=$root/target/mutants
made=$root/target/mutants-made
export CARGO_TARGET_DIR=$root/target
soak=$CARGO_TARGET_DIR/release/soak
export CARGO_INCREMENTAL=1
profile=()
for package in core plugins recording driver tests-simulation; do
    profile+=(--config "profile.release.package.plimsoll-$package.opt-level=1")
done

[ $# -gt 0 ] || set -- $(cd "$patches" && ls ./*.patch | sed 's|^\./||; s|\.patch$||')

# Brings the copy up to date; what did not change keeps its time, lest it be built again.
mkdir -p "$tree" "$made"
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

missed=0 playing='' player=0

# Says what became of the version that is played, if there is one.
judge() {
    [ -n "$playing" ] || return 0
    local status=0
    wait "$player" || status=$?
    case $status in
        0) echo "MISSED $playing: nothing broke within $seeds seeds"; missed=$((missed + 1)) ;;
        1) echo "caught $playing: $(head -1 "$made/$playing.out")" ;;
        *) echo "BROKEN $playing: the run ended with status $status"; missed=$((missed + 1)) ;;
    esac
    rm -f "$made/$playing"
    playing=''
}

for name in "$@"; do
    patch --quiet --dry-run -d "$tree" -p1 < "$patches/$name.patch" >/dev/null \
        || { echo "STALE  $name: the patch does not fit any more"; missed=$((missed + 1)); continue; }
    patch --quiet --no-backup-if-mismatch -d "$tree" -p1 < "$patches/$name.patch"
    built=yes
    (cd "$tree" && timeout "$bound" "${CARGO:-cargo}" build --release "${profile[@]}" --quiet --workspace --bin soak) \
        || built=no
    patch --quiet --no-backup-if-mismatch -R -d "$tree" -p1 < "$patches/$name.patch"
    [ $built = yes ] && mv "$soak" "$made/$name"
    judge
    if [ $built = no ]; then
        echo "BROKEN $name: it does not build in ${bound}s"
        missed=$((missed + 1))
        continue
    fi
    timeout "$bound" "$made/$name" --seeds "$seeds" --fail-fast --shrink 0 --cache "$root/target/soak-cache" \
        > "$made/$name.out" 2>&1 &
    playing=$name player=$!
done
judge
exit $((missed > 0))
