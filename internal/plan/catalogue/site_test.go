package catalogue_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/internal/plan/catalogue"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// secret is the content of a file readable by the user but not by the author of a site.
const secret = "-----BEGIN KEY----- dont-tell"

// write writes a file of a site and creates its directories.
func write(t *testing.T, path, text string) {
	t.Helper()
	must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
}

// everything reads all data of a site.
func everything(t *testing.T, site string) (err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var c catalogue.Catalogue
		if c, err = catalogue.Load(site, catalogue.Names{Gates: gate.Promises()}); err != nil {
			return
		}
		if _, err = c.Profiles(); err != nil {
			return
		}
		if _, err = c.Diagnoses(); err == nil {
			_, err = c.Locks(t.TempDir()).Own("own")
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
	return err
}

const ownRecipe = `name: own
summary: one
homepage: https://example.org
id: own-{{version}}
axes:
  - {name: version, about: which, values: ["1.0"]}
source:
  project: own
  version: "{{version}}"
  released: {"1.0": "2024-01-01"}
from: {kind: sdist}
build: "true"
`

// Whatever takes the place of a site's file, builder reads nothing outside the site and
// does not block.
func TestNoFileOfASiteLeadsOutOfIt(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, secret)
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Succeed(t, syscall.Mkfifo(pipe, 0o600))
	for i, file := range []string{
		"recipes/x.yaml", "recipes", "recipes/own.lock.json",
		"images/x.yaml", "patches/horovod/x.yaml", "patches/horovod", "diagnoses/x.yaml", "profiles/x.yaml",
		"images", "patches", "diagnoses", "profiles",
	} {
		targets := []string{key, filepath.Dir(key), "/dev/zero", pipe}
		if i >= 3 { // builder reads these like the first three
			targets = targets[i%4 : i%4+1]
		}
		for _, to := range targets {
			site := t.TempDir()
			if strings.HasPrefix(file, "recipes/") {
				write(t, filepath.Join(site, "recipes", "own.yaml"), ownRecipe)
			}
			path := filepath.Join(site, file)
			must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(to, path))
			err := everything(t, site)
			switch {
			case err == nil:
				t.Errorf("%s leads to %s, and nobody says so", file, to)
			case strings.Contains(err.Error(), "BEGIN") || !strings.Contains(err.Error(), "points outside"):
				t.Errorf("%s to %s: %v", file, to, err)
			case diag.CodeOf(err) != diag.Usage:
				t.Errorf("%s to %s: exit code %d: %v", file, to, diag.CodeOf(err), err)
			}
		}
	}
}

// An error does not print the content of a malformed file. A pipe is not opened. A link
// to a file inside the site works like the file.
func TestWhatLiesInASiteIsARegularFile(t *testing.T) {
	site := t.TempDir()
	write(t, filepath.Join(site, "shared", "own.yaml"), ownRecipe)
	must.Succeed(t, os.MkdirAll(filepath.Join(site, "recipes"), 0o700), os.Symlink("../shared/own.yaml", filepath.Join(site, "recipes", "own.yaml")))
	err := everything(t, site)
	check.That(t, err == nil, "%v", err)
	long := filepath.Join(site, "recipes", "key.yaml")
	write(t, long, "-----BEGIN\n"+strings.Repeat("dont-tell ", 100))
	err = everything(t, site)
	check.That(t, err != nil && strings.Count(err.Error(), "dont-tell") <= 6, "a key in the place of a recipe: %v", err)
	must.Succeed(t, os.Remove(long), syscall.Mkfifo(long, 0o600))
	check.Fails(t, everything(t, site), "pipe", "a pipe in the place of a recipe")
}
