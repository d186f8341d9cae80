package pipelines

import (
	"dagger.io/dagger"

	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
)

// The places of the compiler cache in a build container. They are there in the
// build step alone, and only where it uses the cache.
const (
	ccachePath   = "/opt/builder/ccache"
	ccacheConfig = "/opt/builder/ccache.conf"
	ccacheDir    = "/opt/builder/objects"
)

// ccacheSettings make a hit mean: the same compiler, the same arguments, the same
// directory and the same preprocessed text. What would be faster believes more:
// direct mode does not see a header that appeared earlier in the search path. What
// is not here is as ccache has it: no base_dir, no sloppiness, no remote storage.
const ccacheSettings = `cache_dir = ` + ccacheDir + `
stats_log = /tmp/builder-ccache.log
compiler_check = content
direct_mode = false
depend_mode = false
inode_cache = false
hash_dir = true
file_clone = false
hard_link = false
max_size = 5G
`

// ccacheScript stands before the recipe's script: every C and C++ compiler of GCC
// that the image has by name is reached through ccache, and no other name appears.
const ccacheScript = `mkdir -p /tmp/builder-compilers
for builder_name in $(IFS=:; for d in $PATH; do
  ls "$d" 2>/dev/null | grep -E '^(x86_64-linux-gnu-)?(gcc|g\+\+)(-[0-9]+)?$|^(cc|c\+\+)$' || true
done); do ln -sf ` + ccachePath + ` "/tmp/builder-compilers/$builder_name"; done
unset builder_name
PATH="/tmp/builder-compilers:$PATH"
trap '` + ccachePath + ` --show-log-stats || true' EXIT
`

// usesCcache reports whether the build step of c may take objects from the
// compiler cache. A second build never does: it is there to find out whether the
// first is right.
func (c *cell) usesCcache() bool { return c.Ccache != "" && c.turn == firstTime }

// withCcache adds the compiler cache of the entry to the container of its build
// step.
func (c *cell) withCcache(ctr *dagger.Container) *dagger.Container {
	ctr = ctr.
		WithMountedFile(ccachePath, c.client.Host().File(c.Ccache)).
		WithNewFile(ccacheConfig, ccacheSettings).
		WithMountedCache(ccacheDir, c.client.CacheVolume(ccacheVolume(c.entry)), dagger.ContainerWithMountedCacheOpts{Owner: guestOwner})
	return setEnv(ctr, "CCACHE_CONFIGPATH", ccacheConfig)
}

// ccacheVolume names the cache that an entry may read and write. Whatever runs in
// a build step can write into its cache, so that only builds of one source in one
// image share it: what one source does is never part of another's result.
func ccacheVolume(e lock.Entry) string {
	return "builder-ccache-" + shortDigest(e.Image.Key()+e.Source.SHA256+pypi.CcachePin().SHA256+ccacheSettings+ccacheScript)
}
