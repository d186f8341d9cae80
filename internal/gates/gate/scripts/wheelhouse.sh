# Installs a wheelhouse as its users do, into an environment with nothing in it,
# and asks what lacks. Arguments: the uv program, the interpreter, the list of
# requirements, the folder of the wheels.
set -eu
export UV_OFFLINE=1 UV_NO_CONFIG=1 UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy
"$1" pip install --python "$2" --no-index --no-deps --require-hashes --find-links "$4" --requirement "$3"
echo "== installed"
"$1" pip freeze --python "$2"
echo "== needs"
"$1" pip check --python "$2"
