package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/testutil/docscript"
	"builder/internal/testutil/markdown"
)

// pages returns every page that people read.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{filepath.Join(repositoryRoot, "README.md")}
	docs := filepath.Join(repositoryRoot, "docs")
	err := filepath.WalkDir(docs, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "reference" { // is written from the code
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) < 10 {
		t.Fatalf("%d pages, %v", len(all), err)
	}
	return all
}

// blocks reads the blocks of a page.
func blocks(t *testing.T, path string) []docscript.Block {
	t.Helper()
	page, err := markdown.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := docscript.Of(page)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPages does what every page shows, in a directory that begins with the
// examples of docs, and compares what it prints. No page may need an engine or a
// network, but in the blocks that say so; of these the commands are understood.
func TestPages(t *testing.T) {
	for _, path := range pages(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			host := reader(t)
			host.Play(t, path, docscript.Run)
			understood(t, host, path)
		})
	}
}

// tools are the programs of the host that pages use beside builder.
var tools = []string{"cp", "grep", "head", "mkdir", "sed", "tar"}

// reader is a host of its own with the examples in the working directory.
func reader(t *testing.T) docscript.Host {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(repositoryRoot, "docs", "examples"))); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, name := range tools {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return docscript.Host{Dir: dir, Env: readerEnv(dir, underTest()+string(filepath.ListSeparator)+bin)}
}

// underTest is the directory with the programs under test.
func underTest() string {
	first, _, _ := strings.Cut(os.Getenv("PATH"), string(filepath.ListSeparator))
	return first
}

// readerEnv is the environment of [alone], for a shell.
func readerEnv(dir, path string) []string {
	return []string{
		"PATH=" + path, "HOME=" + dir, "TERM=dumb", "TZ=UTC", "LC_ALL=C.UTF-8",
		"BUILDER_HOME=" + filepath.Join(dir, ".builder"),
		"BUILDER_ENGINE=unix://" + filepath.Join(dir, "no-engine"),
		"BUILDER_NO_INSTALL=1", "BUILDER_MIRROR_DEBIAN=http://127.0.0.1:1",
		"http_proxy=http://127.0.0.1:1", "https_proxy=http://127.0.0.1:1", "UV_OFFLINE=1", "GOPROXY=off",
	}
}

// What a page shows of a file is in the file.
func TestPagesShowFilesAsTheyAre(t *testing.T) {
	shown := 0
	for _, path := range pages(t) {
		for _, b := range blocks(t, path) {
			if b.Kind != docscript.File {
				continue
			}
			shown++
			text, err := os.ReadFile(filepath.Join(filepath.Dir(path), b.About))
			if err != nil {
				t.Errorf("%s:%d: %v", path, b.Line, err)
			} else if !strings.Contains("\n"+string(text), "\n"+strings.Join(b.Lines, "\n")+"\n") {
				t.Errorf("%s:%d: the block is not a part of %s:\n%s", path, b.Line, b.About, cmp.Diff(string(text), strings.Join(b.Lines, "\n")+"\n"))
			}
		}
	}
	if shown < 5 {
		t.Errorf("only %d blocks show a file", shown)
	}
}

// notRun are the blocks that no test can run, by page, each with its reason. The
// list is compared as a whole, so that nobody adds to it unseen.
var notRun = []string{
	"actions.md: it merges what other runs have left",
	"advisories.md: it needs an installed Horovod of each release",
	"bench.md: it needs GPUs, and the libraries to compare",
	"bench.md: it needs GPUs of AMD",
	"environments.md: it needs torch",
	"gates.md: it needs GPUs",
	"gpt-sovits.md: it needs the repository of GPT-SoVITS",
	"horovod-rocm.md: it installs TensorFlow for ROCm",
	"horovod-rocm.md: it needs an installed environment",
	"horovod-rocm.md: it needs two nodes with GPUs",
	"install.md: it builds the program that the tests have built already",
	"nccl-torch.md: it takes half an hour on two cores",
	"nccl-torch.md: it needs an environment with torch",
	"nccl-torch.md: it needs GPUs",
	"publish.md: it needs a web server of yours",
	"kubernetes.md: it needs a cluster",
	"offline.md: the story of package e2e does it, in the chapter \"through Docker and Podman\"",
	"progress.md: it needs a run",
	"publishing.md: it needs a web server of yours",
	"publishing.md: it needs a registry of yours",
	"publishing.md: it needs an upload server of yours",
	"reliability.md: it needs two engines",
	"trust.md: it takes as long as a build, which the story of package e2e does on another engine",
}

func TestBlocksThatAreNotRun(t *testing.T) {
	var got []string
	for _, path := range pages(t) {
		for _, b := range blocks(t, path) {
			if b.Kind == docscript.Elsewhere {
				got = append(got, filepath.Base(path)+": "+b.About)
			}
		}
	}
	t.Logf("not run:\n%s", strings.Join(got, "\n"))
	if diff := cmp.Diff(notRun, got); diff != "" {
		t.Errorf("blocks that are run nowhere (-listed +found):\n%s", diff)
	}
}
