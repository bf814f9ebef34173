# What the test cluster is built from. Read by build.sh; exact versions of public Go modules.
# Kubernetes 1.34 and not newer: a later kubelet refuses machines with the first kind of cgroups.
KUBERNETES=v1.34.4
KWOK=v0.7.0
COREDNS=v1.12.4
VOLCANO=v1.14.1
VOLCANO_APIS=v1.14.0
# The Go it is built with where the machine has none, or one older than Kubernetes asks for.
GO=1.26.6
GO_MINOR=24
# Counted up when what is built from them, or how, changes; the cache holds one build per number.
RECIPE=2
# The same for what a real node is made of, which comes from the archive of this machine's Debian.
NODE_RECIPE=1
