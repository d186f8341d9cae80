# The engine's supervisor: process 1 of a pid namespace, in a mount namespace
# of its own, with the locked pid file as descriptor 3. When it ends, the
# kernel ends whatever the engine has left, and the lock is free.
#
#   engine.sh ENGINE ARGUMENT...
#
#   MASK    a directory whose content is laid over the host's
#   SOCKET  the socket of the engine
set -eu

# The host's /proc is still there, and says which process this is on the host.
read -r pid _ </proc/self/stat
echo "$pid" >&3

# Mounts of the host come in (and go: a disk can still be unmounted), ours
# never get out.
mount --make-rslave /
mount -t proc proc /proc
for dir in /etc/dagger /run/buildkit /run/containers /run/dagger /run/runc /var/lib/cni; do
	mkdir -p "$dir" "$MASK$dir"
	mount --bind "$MASK$dir" "$dir"
done

# limit is how many minutes an engine without clients runs. A start takes seconds.
limit=120

# idle ends after these minutes, or when the home was deleted.
idle() {
	minutes=0
	while [ "$minutes" -lt "$limit" ] && [ -e "$0" ]; do
		sleep 60
		minutes=$((minutes + 1))
		# One line is the listener, the others are connections.
		if [ "$(grep -c " $SOCKET\$" /proc/net/unix)" -gt 1 ]; then minutes=0; fi
	done
}

"$@" 3>&- &
engine=$!
trap 'kill -TERM "$engine"' TERM
{
	idle
	echo "engine.sh: no client for $minutes minutes, or no home: stopping"
	kill -TERM "$engine"
} 3>&- &

# A signal ends wait, not the engine.
status=0
while kill -0 "$engine" 2>/dev/null; do
	wait "$engine" || status=$?
done
exit "$status"
