// Package browsertest renders pages in a real browser, for tests.
package browsertest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"builder/test/kit/must"
)

// find returns the path of the host's browser. It skips the test if there is none.
func find(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("this host has no Chromium")
	return ""
}

func run(t *testing.T, address string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--user-data-dir=" + t.TempDir()}, args...)
	out, err := exec.CommandContext(ctx, find(t), append(args, address)...).Output()
	must.Hold(t, err == nil, "showing %s: %v", address, err)
	return string(out)
}

// DOM returns the DOM of a page after its scripts have run.
func DOM(t *testing.T, address string) string {
	t.Helper()
	return run(t, address, "--dump-dom")
}

// Picture writes a screenshot of a page for review to the directory in
// BUILDER_TEST_PICTURES, if set. size is width and height such as 1000,1200.
func Picture(t *testing.T, address, size, name string) {
	t.Helper()
	if dir := os.Getenv("BUILDER_TEST_PICTURES"); dir != "" {
		run(t, address, "--window-size="+size, "--screenshot="+filepath.Join(dir, name+".png"))
	}
}
