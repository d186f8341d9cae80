package pipelines

import (
	"strconv"

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

// ccacheSettings require the same compiler, arguments and directory for a hit, and the
// same preprocessed text or the same headers. All other settings are ccache's defaults:
// no base_dir, no sloppiness, no remote storage.
//
// Direct mode reuses an object without the preprocessor if the source and the headers
// that the preprocessor read have not changed. It cannot see a new file that the
// preprocessor would find first. [ccacheScript] closes this gap.
const ccacheSettings = `cache_dir = ` + ccacheDir + `
stats_log = /tmp/builder-ccache.log
compiler_check = content
direct_mode = true
depend_mode = false
inode_cache = false
hash_dir = true
file_clone = false
hard_link = false
max_size = 5G
`

// ccacheStale is the exit status of a build whose objects from the cache may be wrong.
const ccacheStale = 97

// ccacheScript runs before the recipe's script. It puts ccache in front of every GCC C
// and C++ compiler of the image, under the same names, and adds no other names.
//
// A build may use direct mode with what an earlier build left only if both trees have the
// same file names, before the build and after it. What a build generates follows from its
// script, its environment, the files that are no C or C++, and programs that it compiles.
// So the script, the environment, all names and the content of those files select the
// part of the cache for direct mode, as OBJC_INCLUDE_PATH: ccache 4.14 mixes this variable
// into the key of a direct lookup and not into that of an object, and GCC reads it only for
// Objective-C. The names after the build are compared with those of the first build with
// this selection. If they differ, the build ends with ccacheStale, and direct mode stays
// off for the selection. It also stays off if the first build did not come to its end here,
// because it was killed, still runs, or has replaced this shell by exec. A build that fails
// leaves nothing for direct lookups. What a later build leaves when it is killed, or before
// it ends, is not compared: a program that it compiles could have generated a header that
// hides another. The gate reproducible finds that.
var ccacheScript = `mkdir -p /tmp/builder-compilers ` + ccacheDir + `/trees
for builder_name in $(IFS=:; for d in $PATH; do
  ls "$d" 2>/dev/null | grep -E '^(x86_64-linux-gnu-)?(gcc|g\+\+)(-[0-9]+)?$|^(cc|c\+\+)$' || true
done); do ln -sf ` + ccachePath + ` "/tmp/builder-compilers/$builder_name"; done
unset builder_name
PATH="/tmp/builder-compilers:$PATH"
builder_digest() { LC_ALL=C sort -o /tmp/builder-names /tmp/builder-names; sha256sum </tmp/builder-names | cut -c 1-64; }
builder_names() { find ` + buildDir + ` -printf '%y %p %l\n' >/tmp/builder-names; }
builder_names
env >>/tmp/builder-names
echo "$builder_script" >>/tmp/builder-names
find ` + buildDir + ` -type f ! -name '*.[ch]' ! -name '*.[ch]pp' ! -name '*.[ch]xx' ! -name '*.[ch]++' ! -name '*.cc' ! -name '*.hh' ! -name '*.cu' ! -name '*.cuh' -exec sha256sum {} + >>/tmp/builder-names
OBJC_INCLUDE_PATH=/builder/$(builder_digest)
export OBJC_INCLUDE_PATH
builder_tree=` + ccacheDir + `/trees/${OBJC_INCLUDE_PATH#/builder/}
builder_first=
if [ ! -e "$builder_tree" ] && mkdir "$builder_tree.begun" 2>/dev/null; then builder_first=1
elif [ ! -s "$builder_tree" ]; then export CCACHE_NODIRECT=1; fi
builder_end() {
  builder_status=$?
  ` + ccachePath + ` --show-log-stats || true
  builder_names
  if [ $builder_status = 0 ] && [ "$builder_first" ]; then
    builder_new=$(mktemp "$builder_tree.XXXXXX")
    builder_digest >"$builder_new"
    mv "$builder_new" "$builder_tree"
  elif [ $builder_status = 0 ] && [ -s "$builder_tree" ] && [ "$(builder_digest)" != "$(cat "$builder_tree")" ]; then
    : >"$builder_tree"
    builder_status=` + strconv.Itoa(ccacheStale) + `
  fi
  if [ $builder_status != 0 ]; then
    find ` + ccacheDir + ` -name '*M' -newer /tmp/builder-compilers -exec rm -f {} +
    if [ "$builder_first" ]; then rmdir "$builder_tree.begun"; fi
  fi
  exit $builder_status
}
trap builder_end EXIT
`

// withCcache returns the script of a build that uses the cache.
func withCcache(script string) string {
	return "builder_script=" + shortDigest(script) + "\n" + ccacheScript + script
}

// usesCcache reports whether the build step of c may use the compiler cache. A second
// build never does, because it has to verify the first.
func (c *cell) usesCcache() bool { return c.Ccache != "" && c.turn == firstTime }

// mountCcache adds the entry's compiler cache to the container of its build step.
func (c *cell) mountCcache(ctr *dagger.Container) *dagger.Container {
	ctr = ctr.
		WithMountedFile(ccachePath, c.client.Host().File(c.Ccache)).
		WithNewFile(ccacheConfig, ccacheSettings).
		WithMountedCache(ccacheDir, c.client.CacheVolume(ccacheVolume(c.entry)), dagger.ContainerWithMountedCacheOpts{Owner: guestOwner})
	return setEnv(ctr, "CCACHE_CONFIGPATH", ccacheConfig)
}

// ccacheVolume returns the name of the cache an entry may read and write. Any program
// in a build step can write into its cache. So only builds of one source in one image
// with the same inputs share a cache, and no source can affect another's result.
func ccacheVolume(e lock.Entry) string {
	text := e.Image.Key() + e.Source.SHA256 + pypi.CcachePin().SHA256 + ccacheSettings + ccacheScript
	for _, in := range e.Inputs {
		text += in.Key
	}
	return "builder-ccache-" + shortDigest(text)
}
