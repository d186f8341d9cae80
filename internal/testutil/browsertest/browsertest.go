// Package browsertest shows pages in a real browser, for the tests of what people
// look at.
package browsertest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// find returns the browser of the host; a test is nothing without it.
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
	if err != nil {
		t.Fatalf("showing %s: %v", address, err)
	}
	return string(out)
}

// DOM returns a page as the browser has it once its scripts have run.
func DOM(t *testing.T, address string) string {
	t.Helper()
	return run(t, address, "--dump-dom")
}

// Picture keeps a picture of a page, of a size such as 1000,1200, where
// BUILDER_TEST_PICTURES names a directory; it is to be looked at.
func Picture(t *testing.T, address, size, name string) {
	t.Helper()
	if dir := os.Getenv("BUILDER_TEST_PICTURES"); dir != "" {
		run(t, address, "--window-size="+size, "--screenshot="+filepath.Join(dir, name+".png"))
	}
}
