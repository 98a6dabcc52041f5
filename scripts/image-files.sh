#!/usr/bin/env bash
# Builds what the image holds into a folder: the program under both its names, its bill of materials, its licence. Fails if it
# would be too large with the base below it. Needs cargo-cyclonedx; SBOM=none leaves the bill of materials out.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?image-files.sh FOLDER}
base_mib=24  # of gcr.io/distroless/cc-debian12
most_mib=60

cd "$root"
cargo build --release --locked -p plimsoll
mkdir -p "$out"
strip -o "$out/plimsoll" target/release/plimsoll
ln -f "$out/plimsoll" "$out/cluster-autoscaler"
cp LICENSE "$out/LICENSE"
if [ "${SBOM:-}" != none ]; then
    cargo cyclonedx --manifest-path host/plimsoll/Cargo.toml --format json --override-filename sbom.cdx --target x86_64-unknown-linux-gnu
    mv host/plimsoll/sbom.cdx.json "$out/sbom.cdx.json"
fi

# The base has the C library and libgcc, and no more.
if ldd "$out/plimsoll" | awk '{print $1}' | grep -Ev '^(linux-vdso|libc|libm|libgcc_s|libdl|libpthread|librt|/lib64/ld-linux)[-.]|^/lib'; then
    echo "image-files: the program needs a library that the base does not have" >&2
    exit 1
fi
size_mib=$(($(stat -c %s "$out/plimsoll") / 1048576 + 1))
echo "image-files: the program has $size_mib MiB, the image about $((size_mib + base_mib)) MiB, at most $most_mib MiB may be"
[ $((size_mib + base_mib)) -le $most_mib ]
