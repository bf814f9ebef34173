#!/usr/bin/env bash
# Builds kubectl alone, once per user, for ray_bench.py. The test cluster's own kubectl is part of a
# program that holds the whole control plane, and starting that would be counted against it.
# The last line it prints names the program.
set -euo pipefail
. "$(dirname "$0")/../tools/cluster/versions.sh" # of Kubernetes

home=${XDG_CACHE_HOME:-$HOME/.cache}/paddlecloud/bench
program=$home/kubectl-$KUBERNETES
if [ -x "$program" ]; then
    echo "$program"
    exit 0
fi
mkdir -p "$home"
exec 9>"$home/kubectl.lock"
flock 9
if [ -x "$program" ]; then
    echo "$program"
    exit 0
fi
PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || { echo "Go is missing, and kubectl is built from source with it" >&2 && exit 1; }

work=$home/kubectl.build
mkdir -p "$work"
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
export CGO_ENABLED=0 GOFLAGS="-mod=mod -buildvcs=false" GOTOOLCHAIN=local GOCACHE=$work/cache
staged=v0.${KUBERNETES#v1.} # Kubernetes publishes its parts under this number
cd "$work"
cat >go.mod <<END
module kubectl
require k8s.io/kubectl $staged
END
cat >main.go <<END
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	util.CheckErr(cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()))
}
END
nice -n 15 go build -trimpath -ldflags '-s -w' -o "$work/program" .
mv "$work/program" "$program" # whole, or not there
echo "$program"
