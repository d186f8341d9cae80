package pipelines

import (
	"dagger.io/dagger"

	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
)

// Paths of the compiler cache in a build container. They exist only in the build step,
// and only if it uses the cache.
const (
	ccachePath   = "/opt/builder/ccache"
	ccacheConfig = "/opt/builder/ccache.conf"
	ccacheDir    = "/opt/builder/objects"
)

// ccacheSettings require the same compiler, arguments, directory and preprocessed text
// for a hit. Faster settings are less strict: direct mode misses a new header earlier
// in the search path. All other settings are ccache's defaults: no base_dir, no
// sloppiness, no remote storage.
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

// ccacheScript runs before the recipe's script. It puts ccache in front of every GCC C
// and C++ compiler of the image, under the same names, and adds no other names.
const ccacheScript = `mkdir -p /tmp/builder-compilers
for builder_name in $(IFS=:; for d in $PATH; do
  ls "$d" 2>/dev/null | grep -E '^(x86_64-linux-gnu-)?(gcc|g\+\+)(-[0-9]+)?$|^(cc|c\+\+)$' || true
done); do ln -sf ` + ccachePath + ` "/tmp/builder-compilers/$builder_name"; done
unset builder_name
PATH="/tmp/builder-compilers:$PATH"
trap '` + ccachePath + ` --show-log-stats || true' EXIT
`

// usesCcache reports whether the build step of c may use the compiler cache. A second
// build never does, because it has to verify the first.
func (c *cell) usesCcache() bool { return c.Ccache != "" && c.turn == firstTime }

// withCcache adds the entry's compiler cache to the container of its build step.
func (c *cell) withCcache(ctr *dagger.Container) *dagger.Container {
	ctr = ctr.
		WithMountedFile(ccachePath, c.client.Host().File(c.Ccache)).
		WithNewFile(ccacheConfig, ccacheSettings).
		WithMountedCache(ccacheDir, c.client.CacheVolume(ccacheVolume(c.entry)), dagger.ContainerWithMountedCacheOpts{Owner: guestOwner})
	return setEnv(ctr, "CCACHE_CONFIGPATH", ccacheConfig)
}

// ccacheVolume returns the name of the cache an entry may read and write. Any program
// in a build step can write into its cache. So only builds of one source in one image
// share a cache, and no source can affect another's result.
func ccacheVolume(e lock.Entry) string {
	return "builder-ccache-" + shortDigest(e.Image.Key()+e.Source.SHA256+pypi.CcachePin().SHA256+ccacheSettings+ccacheScript)
}
