package pipelines

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"dagger.io/dagger"

	"builder/internal/base/diag"
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
// for a hit. Direct mode saves the preprocessor, and does not see a new header that the
// preprocessor would find first. So it is off, and a build that fails half way leaves
// nothing but objects that belong to their text. All other settings are ccache's
// defaults: no base_dir, no sloppiness, no remote storage.
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
`

// usesCcache reports whether a build step may use a compiler cache; program is "" for none.
// A second build never does, because it has to verify the first.
func usesCcache(program, turn string) bool { return program != "" && turn == firstTime }

// execCcached runs a script with the compiler cache of its container, and counts the hits.
func execCcached(ctx context.Context, s *session, ctr *dagger.Container, script string) (built *dagger.Container, counted string, err error) {
	built, _, err = s.exec(ctx, ctr, firstTime, noCaps, shell(ccacheScript+script))
	if err != nil {
		return nil, "", err
	}
	_, said, err := s.exec(ctx, built, firstTime, noCaps, []string{ccachePath, "--print-log-stats"})
	if err != nil && diag.CodeOf(err) != diag.Build { // the step may have damaged the log
		return nil, "", err
	}
	return built, hits(said), nil
}

// hits returns the hits and misses in the statistics of ccache as JSON. The step could
// write what it likes there, so nothing but a report depends on it.
func hits(stats string) string {
	count := map[string]int{}
	for line := range strings.Lines(stats) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if n, err := strconv.Atoi(number); err == nil && n >= 0 {
			count[name] = n
		}
	}
	return fmt.Sprintf(`{"hits":%d,"misses":%d}`, count["preprocessed_cache_hit"], count["cache_miss"])
}

// mountCcache adds the program and the volume of a compiler cache to a container.
func mountCcache(ctr *dagger.Container, client *dagger.Client, program, volume string) *dagger.Container {
	ctr = ctr.
		WithMountedFile(ccachePath, client.Host().File(program)).
		WithNewFile(ccacheConfig, ccacheSettings).
		WithMountedCache(ccacheDir, client.CacheVolume(volume), dagger.ContainerWithMountedCacheOpts{Owner: guestOwner})
	return setEnv(ctr, "CCACHE_CONFIGPATH", ccacheConfig)
}

// ccacheVolume returns the name of the cache an entry may read and write. Any program
// in a build step can write objects of another text into its cache. So the name holds the
// entry's key, with its recipe, script, environment, patches, source and image: a build
// takes objects of nothing but its own earlier attempts.
func ccacheVolume(e lock.Entry) string {
	return "builder-ccache-" + shortDigest(e.Key()+pypi.Ccache.Pin().SHA256+ccacheSettings+ccacheScript)
}
