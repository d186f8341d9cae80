package host

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/base/owned"
	"builder/internal/build/native"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// program writes a shell script as a program.
func program(t *testing.T, path, script string) {
	t.Helper()
	must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755))
}

// Docker has the image, can pull it, loads it from a file, or none of these. In the last case the native engine
// runs, or the error explains how to load the image. If the native engine exists, nothing
// is pulled.
func TestDockerWithAndWithoutItsImage(t *testing.T) {
	const wanted = native.UpstreamImage
	const file = "an image"
	for name, c := range map[string]struct{ held, pull, image, digest string }{
		"our image":    {held: native.ImageName, pull: "exit 1", image: native.ImageName},
		"upstream's":   {held: wanted, pull: "exit 1", image: wanted},
		"can pull":     {pull: "exit 0", image: wanted},
		"out of reach": {pull: "echo a trace >&2; echo no such host >&2; exit 1"},
		"a file":       {pull: "exit 1", image: native.ImageName, digest: fmt.Sprintf("%x", sha256.Sum256([]byte(file)))},
		"a wrong file": {pull: "exit 1", digest: strings.Repeat("0", 64)},
		"other engine": {pull: "exit 1", digest: fmt.Sprintf("%x", sha256.Sum256([]byte("another")))},
	} {
		t.Run(name, func(t *testing.T) {
			home, bin := t.TempDir(), t.TempDir()
			var notes []string
			note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
			own := native.New(home, note, native.Options{})
			client := filepath.Join(home, "engine", "client-"+native.Version)
			program(t, filepath.Join(client, "dagger"), `echo "dagger v0.19.10 (image://`+wanted+`) linux/amd64"`)
			must.Succeed(t, owned.Seal(client, client)) // otherwise it is built
			program(t, filepath.Join(bin, "docker"), `case "$*" in
info*) echo '{"ID":"number"}' ;;
*"inspect --format {{.Id}} `+c.held+`") echo sha256:0011 ;;
"image inspect"*) [ -e `+bin+`/pulled ] || exit 1 ;;
"load --quiet --input"*) if [ "$(cat "$4")" = "`+file+`" ]; then : >`+bin+`/pulled; fi ;;
pull*) : >`+bin+`/pulled; `+c.pull+` ;;
container*) exit 1 ;;
run*) echo "$*" >`+bin+`/ran ;;
esac`)
			t.Setenv("PATH", bin+":/usr/bin:/bin")
			e := &engine{}
			e.Keys.Home, e.Keys.Note, e.Engines.Native.Cache = home, note, 20e9
			e.Engines.Daemon = FindDaemon(t.Context())
			if c.digest != "" {
				place := filepath.Join(t.TempDir(), "engine.tar")
				data := file
				if name == "other engine" {
					data = "another"
				}
				must.Succeed(t, os.WriteFile(place, []byte(data), 0o644))
				e.Engines.Image, _ = native.ParseEngineImage(place + "@sha256:" + c.digest)
			}
			address, _, there, err := e.contained(t.Context(), own)
			ran, _ := os.ReadFile(filepath.Join(bin, "ran"))
			switch {
			case name == "a wrong file":
				check.That(t, diag.CodeOf(err) == diag.Fetch && !there && ran == nil && strings.Contains(firstHint(err), "the digest of BUILDER_ENGINE_IMAGE"),
					"%v, %v; started with %s", there, err, ran)
			case c.image != "":
				if err != nil || !there || !strings.HasPrefix(address, "container+docker://builder-engine-") || !strings.Contains(string(ran), c.image+" --oci-worker-gc-keepstorage 1000,2000,10000") {
					t.Errorf("%q, %v, %v; started with %s", address, there, err, ran)
				}
			case name == "other engine" && native.Supported() == nil:
				if err != nil || there || !strings.Contains(strings.Join(notes, "\n"), "does not hold localhost/builder-engine:v0.19.10, the engine of this builder: using the native engine") {
					t.Errorf("%v, %v, %q", there, err, notes)
				}
			case name == "other engine":
				check.That(t, diag.CodeOf(err) == diag.NoEngine && strings.Contains(firstHint(err), "builder engine image"),
					"%v, hint %q", err, firstHint(err))
			case native.Supported() == nil:
				if err != nil || there || address != "" || !strings.Contains(strings.Join(notes, "\n"), "cannot pull it: docker pull: no such host: using the native engine") {
					t.Errorf("%q, %v, %v, %q", address, there, err, notes)
				}
			default:
				if diag.CodeOf(err) != diag.NoEngine || !strings.Contains(firstHint(err), "builder engine image --to engine.tar && docker load -i engine.tar") {
					t.Errorf("%v, hint %q", err, firstHint(err))
				}
			}
		})
	}
}

// firstHint returns the first hint of an error, or "".
func firstHint(err error) string {
	for _, e := range diag.All(err) {
		if e.Hint != "" {
			return e.Hint
		}
	}
	return ""
}
