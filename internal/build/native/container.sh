#!/bin/sh
# The engine as process 1 of a container. Its arguments are those of the engine.
set -eu

# Control groups of version 2: a group that holds processes gives none of its
# controllers on, so that this process moves into one of its own.
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
	mkdir -p /sys/fs/cgroup/init
	while read -r pid; do
		echo "$pid" >/sys/fs/cgroup/init/cgroup.procs || true
	done </sys/fs/cgroup/cgroup.procs
	read -r controllers </sys/fs/cgroup/cgroup.controllers
	for controller in $controllers; do
		echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control || true
	done
fi

# /run may be empty when a container starts.
mkdir -p /run/dagger/content /run/buildkit /var/run /var/lib/dagger /tmp
ln -sfn /usr/lib/builder-engine/bin /run/dagger/bin

exec /usr/local/bin/engine --config /etc/dagger/engine.toml --root /var/lib/dagger \
	--addr unix:///run/dagger/engine.sock --oci-cni-binary-dir /usr/lib/builder-engine/bin "$@"
