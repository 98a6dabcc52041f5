#!/usr/bin/env bash
# The tests against a real control plane. `run.sh` runs the short ones on a debug build, `run.sh long` the others on a release
# build. More arguments go to the tests, such as a name. E2E=required fails where Go is missing; otherwise that is only said.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
kind=short
[ "${1:-}" = long ] && { kind=long; shift; }

if ! command -v go >/dev/null; then
    echo "e2e: *** Go is not installed: NOTHING was tested against a real API server ***" >&2
    [ "${E2E:-}" = required ] && exit 1
    exit 0
fi
TESTPLANE=$("$root/scripts/testplane.sh")
export TESTPLANE
cd "$root"
HELM=$TESTPLANE/helm deploy/render.sh --check
# The whole workspace and one of its tests: other choices of packages would compile everything anew with other features.
case $kind in
short) exec "${CARGO:-cargo}" test --workspace --test e2e -- --test-threads=2 "$@" ;;
long) exec "${CARGO:-cargo}" test --release --workspace --test e2e_long -- --test-threads=1 --nocapture "$@" ;;
esac
