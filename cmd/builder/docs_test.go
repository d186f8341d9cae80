package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"builder/internal/ci/actionstest"
	"builder/internal/decode"
	"builder/internal/docscript"
	"builder/internal/markdown"
	"builder/internal/recipe"
)

// pages returns every page that people read.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{filepath.Join(repositoryRoot, "README.md")}
	docs := filepath.Join(repositoryRoot, "docs")
	err := filepath.WalkDir(docs, func(path string, _ os.DirEntry, err error) error {
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
// network, but in the blocks that say so.
func TestPages(t *testing.T) {
	for _, path := range pages(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			reader(t).Play(t, path, docscript.Run)
		})
	}
}

// tools are the programs of the host that pages use beside builder.
var tools = []string{"cat", "cp", "cut", "diff", "grep", "head", "ls", "mkdir", "sed", "tail", "tar"}

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
	"gates.md: it needs GPUs",
	"kubernetes.md: it needs a cluster",
	"publishing.md: it needs a web server of yours",
	"publishing.md: it needs a registry of yours",
	"publishing.md: it needs an upload server of yours",
	"start.md: it builds the program that the tests have built already",
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

// A command that is not run here is at least one that builder understands: its verb,
// its flags and their values.
func TestCommandsThatAreNotRunParse(t *testing.T) {
	host := reader(t)
	bin := t.TempDir() // in which builder reads its arguments and does nothing
	script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", filepath.Join(underTest(), "parse"))
	if err := os.WriteFile(filepath.Join(bin, "builder"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	host.Env = readerEnv(host.Dir, bin)
	parsed := 0
	for _, path := range pages(t) {
		for _, b := range blocks(t, path) {
			if b.Kind != docscript.Elsewhere && b.Kind != docscript.E2E {
				continue
			}
			for _, c := range b.Commands {
				if !callsBuilder.MatchString(c.Text) {
					continue
				}
				parsed++
				if printed, code, err := host.Do(t.Context(), c.Text); code != 0 || err != nil {
					t.Errorf("%s:%d: %s: %v\n%s", path, c.Line, c.Text, err, printed)
				}
			}
		}
	}
	if parsed < 10 {
		t.Errorf("only %d commands were found", parsed)
	}
}

// shownWorkflow is all that a workflow of the pages may hold.
type shownWorkflow struct {
	Name        string              `yaml:"name"`
	On          []string            `yaml:"on"`
	Permissions map[string]string   `yaml:"permissions"`
	Jobs        map[string]shownJob `yaml:"jobs"`
}

type shownJob struct {
	Uses        string            `yaml:"uses"`
	RunsOn      string            `yaml:"runs-on"`
	With        map[string]string `yaml:"with"`
	Secrets     map[string]string `yaml:"secrets"`
	Permissions map[string]string `yaml:"permissions"`
	Strategy    struct {
		Matrix map[string][]int `yaml:"matrix"`
	} `yaml:"strategy"`
	Steps []struct {
		Uses string            `yaml:"uses"`
		Run  string            `yaml:"run"`
		With map[string]string `yaml:"with"`
	} `yaml:"steps"`
}

// A workflow that pages show calls build.yml with inputs and secrets that it has, and
// names cells that exist.
func TestWorkflowsOfPages(t *testing.T) {
	t.Setenv("BUILDER_RECIPES", "")
	build, err := actionstest.Load(filepath.Join(repositoryRoot, ".github", "workflows", "build.yml"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(repositoryRoot, "docs", "examples", "actions", "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	calls := 0
	for _, file := range files {
		var w shownWorkflow
		readYAML(t, file, &w)
		for name, job := range w.Jobs {
			for input := range job.With {
				if _, known := build.On.Call.Inputs[input]; !known {
					t.Errorf("%s: %s: build.yml has no input %s", file, name, input)
				}
			}
			for secret := range job.Secrets {
				if _, known := build.On.Call.Secrets[secret]; !known {
					t.Errorf("%s: %s: build.yml has no secret %s", file, name, secret)
				}
			}
			if cells := job.With["cells"]; cells != "" {
				calls++
				parses(t, file, "builder matrix "+strings.ReplaceAll(cells, "${{ matrix.part }}", "1"))
			}
			for _, step := range job.Steps {
				if step.With["run"] != "" {
					calls++
					parses(t, file, "builder run "+step.With["run"])
				}
			}
		}
	}
	if calls < 5 {
		t.Errorf("only %d calls were found", calls)
	}
}

// parses demands of a command that the program understands it.
func parses(t *testing.T, file, command string) {
	t.Helper()
	var said strings.Builder
	if parseArgs(strings.Fields(command), &said, &said) != 0 {
		t.Errorf("%s: %s: %s", file, command, said.String())
	}
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = decode.YAML(file, data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The part of a recipe that the page on gates shows is one.
func TestWaiverOfPages(t *testing.T) {
	var part struct {
		Expect recipe.Expect `yaml:"expect"`
	}
	readYAML(t, filepath.Join(repositoryRoot, "docs", "examples", "waived.yaml"), &part)
	if len(part.Expect.Waivers) != 1 || part.Expect.Waivers[0].Gate != "glibc-floor" {
		t.Errorf("got %+v", part.Expect.Waivers)
	}
}

var callsBuilder = regexp.MustCompile(`^(\w+=\S+ )*builder `)

// parse is builder without its deeds.
func parse() { os.Exit(parseArgs(os.Args, os.Stdout, os.Stderr)) }

// parseArgs reads the arguments of a command as the program does, up to the point
// where it would begin to work.
func parseArgs(args []string, stdout, stderr io.Writer) int {
	args = append([]string{"builder"}, args[1:]...)
	app := newApp(args, stdout, stderr)
	idle(app.Commands)
	if err := app.Run(typed(args)); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	return 0
}

// idle takes what commands do away from them, but from those that only hold others.
func idle(commands []*cli.Command) {
	for _, c := range commands {
		if len(c.Subcommands) == 0 {
			c.Action = func(*cli.Context) error { return nil }
		}
		idle(c.Subcommands)
	}
}

// placeholders stand for values in the text of pages.
var placeholders = strings.NewReplacer("[RECIPE]", "horovod", "RECIPE", "horovod", "CELLS", "horovod", " N", " 1", "[axes]", "", " … ", " horovod ", "…", "")

// What stands in the text as a command is one too. A verb alone may lack its recipe.
func TestCommandsInTextParse(t *testing.T) {
	t.Setenv("BUILDER_RECIPES", "")
	all := pages(t)
	var texts []markdown.Page
	for _, path := range append(all, filepath.Join(repositoryRoot, "CONTRIBUTING.md")) {
		page, err := markdown.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, page)
	}
	t.Chdir(reader(t).Dir)
	found := 0
	for _, page := range texts {
		for _, span := range page.Code {
			words := strings.Fields(placeholders.Replace(span.Text))
			if len(words) < 2 || words[0] != "builder" || strings.ContainsAny(span.Text, `'"|$`) {
				continue
			}
			found++
			var said strings.Builder
			if parseArgs(words, &said, &said) != 0 && parseArgs(append(words, "horovod"), io.Discard, io.Discard) != 0 {
				t.Errorf("%s:%d: %s: %s", page.Path, span.Line, span.Text, said.String())
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d commands were found in the text", found)
	}
}
