#!/usr/bin/env bash
# Puts what the image holds into a folder: the program under both its names, its bill of materials, its licence. Fails if that
# would be too large with the base below it, or needs more than the base has. Builds the program, unless PROGRAM names it.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?image-files.sh FOLDER}
base_kib=$((24 * 1024)) # of gcr.io/distroless/cc-debian12
most_kib=$((60 * 1024))

mkdir -p "$out"
if [ -z "${PROGRAM:-}" ]; then
    # The whole workspace, of which one program: other choices of packages would compile everything anew with other features.
    (cd "$root" && "${CARGO:-cargo}" build --release --locked --workspace --bin plimsoll)
    PROGRAM=${CARGO_TARGET_DIR:-$root/target}/release/plimsoll
fi
# Symbols stay, so that a profile can be taken from outside; what only a debugger needs goes.
strip --strip-debug -o "$out/plimsoll" "$PROGRAM"
# A link, which an image keeps as one.
ln -sf plimsoll "$out/cluster-autoscaler"
cp "$root/LICENSE" "$out/LICENSE"
"$root/scripts/sbom.py" "$out/sbom.cdx.json"

# The base has the C library and libgcc, and no more.
if ldd "$out/plimsoll" | awk '{print $1}' | grep -Ev '^(linux-vdso|libc|libm|libgcc_s|libdl|libpthread|librt|/lib64/ld-linux)[-.]|^/lib'; then
    echo "image-files: the program needs a library that the base does not have" >&2
    exit 1
fi
kib=$(($(du --summarize --block-size=1024 "$out" | cut -f1) + base_kib))
echo "image-files: the image has about $((kib / 1024 + 1)) MiB, $((base_kib / 1024)) of them the base; $((most_kib / 1024)) may be" >&2
[ "$kib" -le "$most_kib" ]
