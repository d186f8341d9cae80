# Installs a wheelhouse into an environment with nothing in it and prints the mapped
# files of a process. Arguments: the uv program, the interpreter, the list of
# requirements, the folder of the wheels, then MODULE=LIBRARY for each import.
set -eu
export UV_OFFLINE=1 UV_NO_CONFIG=1 UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy
"$1" pip install --quiet --python "$2" --no-index --no-deps --require-hashes --find-links "$4" --requirement "$3"
python=$2
shift 4
"$python" partsload.py "$@"
