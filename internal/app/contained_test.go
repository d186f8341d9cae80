package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/build/native"
)

// program writes a shell script as a program.
func program(t *testing.T, path, script string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755)); err != nil {
		t.Fatal(err)
	}
}

// Docker has the image, can pull it, or neither. In the last case the native engine
// runs, or the error explains how to load the image. If the native engine exists, nothing
// is pulled.
func TestDockerWithAndWithoutItsImage(t *testing.T) {
	const wanted = native.UpstreamImage
	for name, c := range map[string]struct{ held, pull, image string }{
		"our image":    {native.ImageName, "exit 1", native.ImageName},
		"upstream's":   {wanted, "exit 1", wanted},
		"can pull":     {"", "exit 0", wanted},
		"out of reach": {"", "echo a trace >&2; echo no such host >&2; exit 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			home, bin := t.TempDir(), t.TempDir()
			var notes []string
			note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
			own := native.New(home, note, native.Options{})
			program(t, filepath.Join(home, "engine", "client-"+native.Version, "dagger"), `echo "dagger v0.19.10 (image://`+wanted+`) linux/amd64"`)
			program(t, filepath.Join(bin, "docker"), `case "$*" in
info*) echo '{"ID":"number"}' ;;
*"inspect --format {{.Id}} `+c.held+`") echo sha256:0011 ;;
"image inspect"*) [ -e `+bin+`/pulled ] || exit 1 ;;
pull*) : >`+bin+`/pulled; `+c.pull+` ;;
container*) exit 1 ;;
run*) echo "$*" >`+bin+`/ran ;;
esac`)
			t.Setenv("PATH", bin+":/usr/bin:/bin")
			e := &engine{Session: &Session{Home: home, Engines: Engines{Native: native.Options{Cache: 20e9}}, Note: note}}
			address, _, there, err := e.contained(t.Context(), own)
			ran, _ := os.ReadFile(filepath.Join(bin, "ran"))
			switch {
			case c.image != "":
				if err != nil || !there || !strings.HasPrefix(address, "container+docker://builder-engine-") || !strings.Contains(string(ran), c.image+" --oci-worker-gc-keepstorage 1000,2000,10000") {
					t.Errorf("%q, %v, %v; started with %s", address, there, err, ran)
				}
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
