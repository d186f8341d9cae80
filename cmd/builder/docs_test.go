package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/test/kit/check"
	"builder/test/kit/docscript"
	"builder/test/kit/markdown"
	"builder/test/kit/must"
)

// pages returns every page written by hand.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{filepath.Join(repositoryRoot, "README.md")}
	docs := filepath.Join(repositoryRoot, "docs")
	err := filepath.WalkDir(docs, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "reference" { // generated from the code
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	must.Hold(t, err == nil && len(all) >= 10, "%d pages, %v", len(all), err)
	return all
}

// blocks reads the code blocks of a page.
func blocks(t *testing.T, path string) []docscript.Block {
	t.Helper()
	page := must.Get(markdown.Read(path))(t)
	return must.Get(docscript.Of(page))(t)
}

// TestPages runs the commands of every page in a directory with the examples of docs,
// and compares the output. Only blocks marked for it may need an engine or a network;
// their commands are only parsed.
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

// tools are the host programs used by pages, other than builder.
var tools = []string{"cp", "grep", "head", "mkdir", "sed", "tar"}

// reader returns an isolated host with the examples in its working directory.
func reader(t *testing.T) docscript.Host {
	t.Helper()
	dir := t.TempDir()
	must.Succeed(t, os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(repositoryRoot, "docs", "examples"))))
	bin := t.TempDir()
	for _, name := range tools {
		path := must.Get(exec.LookPath(name))(t)
		must.Succeed(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	return docscript.Host{Dir: dir, Env: readerEnv(dir, underTest()+string(filepath.ListSeparator)+bin)}
}

// underTest returns the directory of the programs under test.
func underTest() string {
	first, _, _ := strings.Cut(os.Getenv("PATH"), string(filepath.ListSeparator))
	return first
}

// readerEnv returns the environment of [alone] for a shell.
func readerEnv(dir, path string) []string {
	return []string{
		"PATH=" + path, "HOME=" + dir, "TERM=dumb", "TZ=UTC", "LC_ALL=C.UTF-8",
		"BUILDER_HOME=" + filepath.Join(dir, ".builder"),
		"BUILDER_ENGINE=unix://" + filepath.Join(dir, "no-engine"),
		"BUILDER_NO_INSTALL=1", "BUILDER_MIRROR_DEBIAN=http://127.0.0.1:1",
		"http_proxy=http://127.0.0.1:1", "https_proxy=http://127.0.0.1:1", "UV_OFFLINE=1", "GOPROXY=off", "GOGC=off",
	}
}

// A block with the content of a file must match the file.
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
	check.That(t, shown >= 5, "only %d blocks show a file", shown)
}

// notRun lists the blocks not run by any test, by page, each with its reason. The test
// compares the whole list, so that additions are visible in review.
var notRun = []string{
	"advisories.md: it needs an installed Horovod of each release",
	"bench.md: it needs GPUs, and the libraries to compare",
	"bench.md: it needs two hosts with RDMA devices",
	"environments.md: it needs torch",
	"gates.md: the story of package e2e refuses a patch so",
	"gates.md: it needs GPUs",
	"gates.md: it needs two nodes with GPUs",
	"gates.md: it needs GPUs",
	"gates.md: it needs GPUs and a registry",
	"ci.md: it needs a cluster",
	"horovod-cuda.md: it takes minutes, and the page on ROCm shows the output of a run",
	"horovod-cuda.md: it installs torch",
	"horovod-cuda.md: it needs an installed environment with GPUs",
	"horovod-rocm.md: it installs TensorFlow for ROCm",
	"horovod-rocm.md: it needs an installed environment",
	"horovod-rocm.md: it needs two nodes with GPUs",
	"horovod-rocm.md: it pulls an image of AMD",
	"horovod-rocm.md: it needs an environment with ROCm",
	"horovod-rocm.md: it takes the program uv of your host",
	"install.md: it needs the published index",
	"install.md: it needs the published index",
	"install.md: it builds the program that the tests have built already",
	"nccl-torch.md: it takes an hour on two cores",
	"nccl-torch.md: it needs an environment with torch",
	"nccl-torch.md: it needs GPUs",
	"publish.md: it needs a web server of yours",
	"slurm.md: it needs an environment with Open MPI from PyPI",
	"index.md: the guide shows it",
	"neighbours.md: it needs both wheels and a Python index",
	"neighbours.md: it needs the repository of GPT-SoVITS",
	"neighbours.md: it needs torch and GPUs",
	"offline.md: the story of package e2e does it, in the chapter \"through Docker and Podman\"",
	"publishing.md: it needs a web server of yours",
	"publishing.md: it needs a registry of yours",
	"publishing.md: it starts a service",
	"publishing.md: it needs an upload server of yours",
	"trust.md: it takes as long as a build, which the story of package e2e does on another engine",
	"trust.md: it needs a published wheel",
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
	check.Same(t, "blocks that are run nowhere", notRun, got)
}
