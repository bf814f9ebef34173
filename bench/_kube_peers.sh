#!/usr/bin/env bash
# Builds what kube_bench.py compares with, once per user, from the public Go module proxy:
# Kubeflow's training-operator, Volcano's controllers, and their definitions. (Volcano's scheduler is
# among the programs of the test cluster.) The training-operator is built twice: as it is, and with
# the limits of its API client raised to none, for which it has no flag.
# The last line it prints names the directory; --where prints it and builds nothing.
set -euo pipefail
. "$(dirname "$0")/../tools/cluster/versions.sh" # of Volcano
TRAINING_OPERATOR=v1.8.1
RECIPE=1

home=${XDG_CACHE_HOME:-$HOME/.cache}/paddlecloud/kube
programs=$home/peers-training-operator-$TRAINING_OPERATOR-volcano-$VOLCANO-$RECIPE
if [ "${1:-}" = --where ] || [ -e "$programs/.complete" ]; then
    echo "$programs"
    exit 0
fi
mkdir -p "$home"
exec 9>"$home/peers.lock"
flock 9
if [ -e "$programs/.complete" ]; then
    echo "$programs"
    exit 0
fi
PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || { echo "Go is missing, and the peers are built from source with it" >&2 && exit 1; }

work=$home/peers.build
mkdir -p "$work" "$programs"
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
export CGO_ENABLED=0 GOFLAGS="-mod=mod -buildvcs=false" GOTOOLCHAIN=local GOCACHE=$work/cache

module_field() { # module_field <module@version> <field>
    go mod download -json "$1" | sed -n "s/.*\"$2\": \"\(.*\)\".*/\1/p"
}

build() { # build <module> <version> <package> <output> [script for sed]: by its own requirements
    mkdir -p "$work/$4"
    (
        cd "$work/$4"
        # What stands beside a module in its repository is taken as it was published.
        sed -e 's|^module .*|module peer|' -e "s|=> ./staging/src/\\(volcano.sh/apis\\)|=> \\1 $VOLCANO_APIS|" \
            "$(module_field "$1@$2" GoMod)" >go.mod
        echo "require $1 $2" >>go.mod
        package=$1/$3
        if [ -n "${5:-}" ]; then
            sed -e "$5" "$(module_field "$1@$2" Dir)/$3/main.go" >main.go
            cmp -s main.go "$(module_field "$1@$2" Dir)/$3/main.go" && { echo "$4: nothing was changed" >&2 && exit 1; }
            package=.
        fi
        nice -n 15 go build -trimpath -ldflags '-s -w' -o "$programs/$4" "$package"
    )
}

operator=github.com/kubeflow/training-operator
build "$operator" "$TRAINING_OPERATOR" cmd/training-operator.v1 training-operator
build "$operator" "$TRAINING_OPERATOR" cmd/training-operator.v1 training-operator-unlimited \
    's|mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), |limitless := ctrl.GetConfigOrDie(); limitless.QPS = -1; mgr, err := ctrl.NewManager(limitless, |'
cp -rT --no-preserve=mode "$(module_field "$operator@$TRAINING_OPERATOR" Dir)/manifests/base" \
    "$programs/training-operator-manifests"
build volcano.sh/volcano "$VOLCANO" cmd/controller-manager volcano-controllers
cp -rT --no-preserve=mode \
    "$(module_field "volcano.sh/volcano@$VOLCANO" Dir)/installer/helm/chart/volcano/crd/bases" \
    "$programs/volcano-definitions"
touch "$programs/.complete"
echo "$programs"
