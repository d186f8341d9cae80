# Runs a step without a network. Arguments: the interpreter of the image, the
# capabilities to keep (as setpriv writes them), then the command.
#
# The exec has to be privileged to make a network namespace; everything that it
# was given for that is dropped again before the command starts.
set -eu
# When this was run: what comes out of the cache says when that was.
echo "builder-ran $(date +%s%N)"
# The engine tells every exec where to send its telemetry, and which run this is:
# no build may see what changes from run to run.
unset TRACEPARENT TRACESTATE BAGGAGE $(env | sed -n 's/^\(OTEL_[A-Za-z0-9_]*\)=.*/\1/p')
export BUILDER_PYTHON="$1" BUILDER_CAPS="$2"
shift 2
exec unshare --net --uts --ipc --mount sh -eu -c '
hostname localhost 2>/dev/null || true
if [ -x "$BUILDER_PYTHON" ]; then "$BUILDER_PYTHON" -I -S -c "$BUILDER_SURROUNDINGS"; fi
caps="$BUILDER_CAPS"
unset BUILDER_PYTHON BUILDER_CAPS BUILDER_SURROUNDINGS
exec setpriv --bounding-set "$caps" --inh-caps "$caps" --no-new-privs "$@"
' sh "$@"
