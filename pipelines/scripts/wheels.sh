# Makes a virtual environment from wheel files and nothing else, or, where the
# image says so, from them and the packages of the interpreter. Arguments: the
# interpreter, the directory of the wheels, uv's option for the
# latter or nothing.
set -eu
uv="/opt/builder/uv"
export UV_OFFLINE=1 UV_NO_CONFIG=1 UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_CACHE_DIR=/tmp/uv-cache
"$uv" venv --quiet --python "$1" ${3:+"$3"} /opt/venv
# Compiled once here, because every start of the interpreter would do it again.
for wheel in "$2"/*.whl; do
  [ -e "$wheel" ] || continue # a library needs none
  "$uv" pip install --python /opt/venv --no-index --no-deps --compile-bytecode "$2"/*.whl
  break
done
rm -rf /tmp/uv-cache
