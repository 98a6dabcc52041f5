#!/bin/sh
# Makes sure that there is a compiler for wasm32-unknown-unknown, which the build of providers and expanders looks for
# (host/bundled/src/toolchain.rs). Installs what is missing: with rustup, or as root on Debian with apt-get.
# PLIMSOLL_WASM_TOOLCHAIN=rustup|debian insists on one way.
set -eu

target=wasm32-unknown-unknown
packages="rustc-web cargo-web rust-web-src lld-19"
choice=${PLIMSOLL_WASM_TOOLCHAIN:-}

installed() {
    library=$(rustc --print target-libdir --target "$target" 2>/dev/null) && [ -n "$(ls "$library" 2>/dev/null)" ]
}

debian() {
    [ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] || return 1
    sysroot=$(RUSTUP_TOOLCHAIN='' /usr/bin/rustc --print sysroot) && [ -d "$sysroot/lib/rustlib/src/rust/library" ] || return 1
    ls /usr/bin/wasm-ld* >/dev/null 2>&1
}

case "$choice" in
'' | rustup | debian) ;;
*)
    echo "PLIMSOLL_WASM_TOOLCHAIN is '$choice'; expected rustup or debian, or leave it unset" >&2
    exit 2
    ;;
esac

if [ "$choice" != debian ]; then
    installed && exit 0
    if command -v rustup >/dev/null 2>&1; then
        rustup target add "$target" && installed && exit 0
    fi
fi
if [ "$choice" != rustup ]; then
    debian && exit 0
    if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
        apt-get update -qq
        # shellcheck disable=SC2086
        apt-get install -y -qq --no-install-recommends $packages
        debian && exit 0
    fi
fi

cat >&2 <<TEXT
no compiler for $target was found. Do one of these and try again:
  rustup target add $target
  apt-get install -y --no-install-recommends $packages    (as root, on Debian)
TEXT
exit 1
