#!/usr/bin/env bash
# Builds the control plane for tests and Helm, unless the cache has them already, and prints the folder that holds
# `testplane` and `helm`. Needs Go; the first time also the Go modules and some ten minutes.
# PLIMSOLL_CACHE moves the cache, which clones on one machine share.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source=$root/tests/e2e/testplane
cache=${PLIMSOLL_CACHE:-${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}}
cache=${cache:-$root/target}/plimsoll/testplane

command -v go >/dev/null || { echo "testplane: Go is not installed" >&2; exit 3; }
key=$(cd "$source" && cat -- *.go go.mod go.sum "$root/scripts/testplane.sh" | sha256sum | cut -c1-16)
folder=$cache/$key
if [ ! -e "$folder/done" ]; then
    mkdir -p "$folder"
    exec 9>"$folder/lock"
    flock 9 # another clone may be building the same
fi
if [ ! -e "$folder/done" ]; then
    echo "testplane: building the control plane for tests; the first time takes some ten minutes" >&2
    kubernetes=$(cd "$source" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
    version="-X k8s.io/component-base/version.gitVersion=$kubernetes -X k8s.io/client-go/pkg/version.gitVersion=$kubernetes"
    helm=$(cd "$source" && go list -m -f '{{.Version}}' helm.sh/helm/v3)
    minor=${kubernetes#v1.}
    minor=${minor%%.*}
    about="-X helm.sh/helm/v3/internal/version.version=$helm"
    for package in lint/rules chartutil; do # the Kubernetes that charts are rendered for
        about="$about -X helm.sh/helm/v3/pkg/$package.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$package.k8sVersionMinor=$minor"
    done
    # Equal flags for both, so that they share what is compiled.
    export CGO_ENABLED=0
    (cd "$source" && go build -trimpath -ldflags="-s -w $version" -o "$folder/testplane" . &&
        go build -trimpath -ldflags="-s -w $about" -o "$folder/helm" helm.sh/helm/v3/cmd/helm) >&2
    touch "$folder/done"
fi
touch "$folder"
# Builds that nobody has used for two weeks.
find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime +14 ! -name "$key" -exec rm -rf {} +
echo "$folder"
