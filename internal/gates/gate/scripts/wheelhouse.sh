# Installs a wheelhouse as its users do, into an environment with nothing in it. Without
# more arguments it asks what lacks, otherwise it runs the Python program partsload.py with
# them. Arguments: the uv program, the interpreter, the list of requirements, the folder of
# the wheels, then those of the program.
set -eu
export UV_OFFLINE=1 UV_NO_CONFIG=1 UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy
uv=$1 python=$2
"$uv" pip install --python "$python" --no-index --no-deps --require-hashes --find-links "$4" --requirement "$3"
shift 4
if [ $# -gt 0 ]; then
  exec "$python" partsload.py "$@"
fi
echo "== installed"
"$uv" pip freeze --python "$python"
echo "== needs"
"$uv" pip check --python "$python"
