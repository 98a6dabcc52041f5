#!/usr/bin/env bash
# Lints the chart and renders the plain manifests from it, one for each file in examples/.
# --check: change nothing, and fail if a manifest is not what the chart gives. HELM names another Helm.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
helm=${HELM:-$("$here/../scripts/testplane.sh")/helm}
chart=$here/helm/plimsoll
out=$here/manifests
if [ "${1:-}" = --check ]; then
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi
for values in "$here"/examples/*.yaml; do
    name=$(basename "$values")
    "$helm" lint --strict --quiet --namespace kube-system --values "$values" "$chart"
    {
        echo "# Made by deploy/render.sh from the chart with examples/$name; put your own names and versions in."
        "$helm" template plimsoll "$chart" --namespace kube-system --values "$values"
    } >"$out/$name"
done
if [ "${1:-}" = --check ]; then
    diff -ru "$here/manifests" "$out" || {
        echo "deploy/manifests is not what the chart gives; run deploy/render.sh" >&2
        exit 1
    }
fi
