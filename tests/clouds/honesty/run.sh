#!/usr/bin/env bash
# The vendor's own SDKs drive the fake of Alibaba Cloud. They sign with their own code, so a mistake that the fake and our
# provider shared would show here. Needs python3 and, the first time, a package index.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
venv=$root/target/honesty/venv
stamp=$root/target/honesty/requirements.txt

skip() {
    echo "honesty: $1; the fake clouds were not checked against the vendor's SDKs"
    [ "${HONESTY:-}" = required ] && exit 1
    exit 0
}

command -v python3 >/dev/null || skip "python3 is not installed"
if ! cmp -s "$here/requirements.txt" "$stamp"; then
    mkdir -p "$(dirname "$stamp")"
    python3 -m venv "$venv" || skip "python3 has no venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" || skip "the SDKs cannot be installed"
    cp "$here/requirements.txt" "$stamp"
fi
"${CARGO:-cargo}" build --quiet --manifest-path "$root/Cargo.toml" -p plimsoll-tests-clouds --bin clouds
exec "$venv/bin/python" "$here/alicloud.py" "$root/target/debug/clouds"
