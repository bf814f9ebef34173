#!/usr/bin/env bash
# Fetches what a real node is made of from Debian's (or Ubuntu's) archive, once per user: a container
# runtime, and the content of the one image that pods of the test cluster use. Packages are unpacked
# in the user's cache. None is installed, so no daemon of this machine starts or changes.
# `make cluster-programs` calls it; the last line it prints names the directory.
set -euo pipefail
cd "$(dirname "$0")"
. ./versions.sh
. /etc/os-release

home=${XDG_CACHE_HOME:-$HOME/.cache}/paddlecloud/kube
files=$home/node-$ID-${VERSION_ID:-rolling}-$NODE_RECIPE

if [ "${1:-}" = --where ]; then
    echo "$files"
    exit 0
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "cluster: no real node here: its parts are Debian packages, and there is no apt-get"
    exit 0
fi
mkdir -p "$home"
exec 9>"$home/node.lock"
flock 9
if [ -e "$files/.complete" ]; then
    echo "cluster: $files"
    exit 0
fi
echo "cluster: fetching the parts of a real node (60 MB, 300 MB kept)"
work=$files.part
rm -rf "$work" "$files"
mkdir -p "$work"

fetch() { # fetch <folder> <package>...: the packages and all they need, as if nothing were installed
    local folder=$1
    shift
    mkdir -p "$folder/partial"
    apt-get --quiet=2 --yes --no-install-recommends --download-only \
        -o Dir::State::status=/dev/null -o Dir::Cache::archives="$folder" \
        -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1 install "$@" >/dev/null
}

unpack() { # unpack <folder of packages> <root>
    local package root=$2
    mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
    for folder in bin sbin lib lib64; do
        ln -s "usr/$folder" "$root/$folder"
    done
    for package in "$1"/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root"
    done
    rm -rf "$root"/usr/share/{doc,man,locale,info,lintian,bash-completion}
}

runtime="containerd runc containernetworking-plugins nftables"
# Real Python, since jobs are Python; the C and C++ libraries for programs that pods mount.
image="busybox-static python3 libstdc++6 libgomp1"
fetch_all() { fetch "$work/a" $runtime && fetch "$work/b" $image; }
# The list of packages may be older than the archive.
fetch_all || { apt-get update --quiet=2 && fetch_all; }

rm -f "$work"/a/libc6_*.deb # the programs run with the machine's own
unpack "$work/a" "$work/runtime"

unpack "$work/b" "$work/root"
for applet in $("$work/root/bin/busybox" --list); do
    [ -e "$work/root/bin/$applet" ] || ln -s busybox "$work/root/bin/$applet"
done
mkdir -p "$work/root"/{etc,root,home,var/run}
install -d -m 1777 "$work/root/tmp" "$work/root/var/tmp"
echo 'root:x:0:0:root:/root:/bin/sh' >"$work/root/etc/passwd"
echo 'nobody:x:65534:65534:nobody:/nonexistent:/bin/false' >>"$work/root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$work/root/etc/group"
echo 'hosts: files dns' >"$work/root/etc/nsswitch.conf"
"$(../python.sh)" ./image.py "$work/base.tar" localhost/paddlecloud/base:1 "$work/root" /bin/sh
rm -rf "$work/a" "$work/b" "$work/root"
touch "$work/.complete"
mv "$work" "$files"
echo "cluster: $files"
