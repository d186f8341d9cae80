package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/urfave/cli/v2"

	"builder/internal/app/host"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/build/results"
	"builder/internal/build/run"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/input/store"
	"builder/internal/plan/assemble"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/guesttest"
	"builder/test/kit/ocitest"
	"builder/test/kit/sbomtest"
	"builder/test/kit/sourcetreetest"
	"builder/test/kit/wheeltest"
)

// TestMain makes the test binary also the program builder, and one that only parses its
// arguments.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"builder": main, "parse": parseOnly})
}

// TestScript runs command lines, one behaviour per file of testdata/script. No script
// may need an engine or a network.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		Setup:               alone,
		UpdateScripts:       golden.Updating(),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           guests,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "json": isJSON, "mask": mask, "passed": passed, "sealed": sealed, "files": files, "unseen": unseen, "serve": serve, "repository": repository, "tarball": tarball,
			"seal": seal, "edit": edit, "registry": registry, "damage": damage, "lie": lie, "bubblewrap": bubblewrap,
		},
	})
}

// alone gives a script its own state directory and isolates it from the host: no
// programs, no engine, no network.
func alone(env *testscript.Env) error {
	root, err := filepath.Abs(repositoryRoot)
	if err != nil {
		return err
	}
	wheels := filepath.Join(root, "cmd", "builder", "testdata", "wheels")
	programs, _, _ := strings.Cut(env.Getenv("PATH"), string(filepath.ListSeparator))
	for name, value := range map[string]string{
		"PATH":                  programs,
		"TERM":                  "xterm-256color",
		"BUILDER_HOME":          filepath.Join(env.WorkDir, "home"),
		"BUILDER_ENGINE":        "unix://" + filepath.Join(env.WorkDir, "no-engine"),
		"BUILDER_NO_INSTALL":    "1",
		"BUILDER_ACCEPT":        "all",
		"BUILDER_MIRROR_DEBIAN": "http://127.0.0.1:1",
		"http_proxy":            "http://127.0.0.1:1",
		"https_proxy":           "http://127.0.0.1:1",
		"UV_OFFLINE":            "1",
		"GOPROXY":               "off",
		"GOGC":                  "off", // a short process needs no garbage collection
		"SOURCE":                root,
		"WHEEL":                 filepath.Join(wheels, "nvidia_nccl_cu13-2.29.7+stand.in-py3-none-any.whl"), // contains a text as libnccl.so.2
	} {
		env.Setenv(name, value)
	}
	return nil
}

// bubblewrap installs bubblewrap in the script's state directory.
func bubblewrap(ts *testscript.TestScript, _ bool, _ []string) {
	home, err := guesttest.Home()
	ts.Check(err)
	ts.Check(os.MkdirAll(ts.Getenv("BUILDER_HOME"), 0o700))
	ts.Check(os.CopyFS(filepath.Join(ts.Getenv("BUILDER_HOME"), "tools"), os.DirFS(filepath.Join(home, "tools"))))
}

// guests implements the condition guest: this host fetches bubblewrap, and lets it make
// namespaces.
func guests(condition string) (bool, error) {
	if condition != "guest" {
		return false, fmt.Errorf("unknown condition %q", condition)
	}
	_, err := guesttest.Contained(context.Background())
	return err == nil, nil
}

// exits runs a program and checks its exit code: exits CODE PROGRAM ARGS... The output
// must contain no panic, and no escape codes without a terminal. A failure must print
// an error, and a usage error a hint.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	stdout, stderr := ts.ReadFile("stdout"), ts.ReadFile("stderr")
	switch {
	case strings.Contains(stderr, "goroutine "):
		ts.Fatalf("a panic")
	case strings.Contains(stdout+stderr, "\x1b"):
		ts.Fatalf("escape codes, and no terminal")
	case got == 2 && !strings.Contains(stderr, "hint") && !inFile.MatchString(stderr):
		ts.Fatalf("a usage error that does not say what to do")
	case got != 0 && !strings.HasPrefix(stderr, "error: ") && !strings.Contains(stderr, "\nerror: "):
		ts.Fatalf("exit code %d without an error", got)
	}
}

// inFile matches an error with a line of a file.
var inFile = regexp.MustCompile(`(?m)^error: [^-\s]\S*(:\d+)+: `)

// lie makes an index list its only wheel with the sha256 of another: lie DIR WHEEL.
func lie(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lie DIR WHEEL")
	}
	other, err := artifact.Of(ts.MkAbs(args[1]), "")
	ts.Check(err)
	wheels, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "files", "*", "*.whl"))
	ts.Check(err)
	real, err := artifact.Of(wheels[0], "")
	ts.Check(err)
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, e os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" || strings.Contains(path, ".attestations") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, bytes.ReplaceAll(data, []byte(real.SHA256), []byte(other.SHA256)), 0o644)
	}))
}

// isJSON checks that a file is one JSON value, and checks values in it: json FILE [PATH
// WANT]... A path such as cells.0.id can end in len for a length.
func isJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args)%2 != 1 {
		ts.Fatalf("usage: json FILE [PATH WANT]...")
	}
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	dec.UseNumber()
	var doc any
	ts.Check(dec.Decode(&doc))
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		ts.Fatalf("%s holds more than one JSON value", args[0])
	}
	for i := 1; i < len(args); i += 2 {
		got, err := lookUp(doc, args[i])
		ts.Check(err)
		if got != args[i+1] {
			ts.Fatalf("%s is %s, want %s", args[i], got, args[i+1])
		}
	}
}

// lookUp returns the value at a path as text: strings unchanged, other values as JSON.
func lookUp(value any, path string) (string, error) {
	for step := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			if step == "len" {
				return strconv.Itoa(len(v)), nil
			}
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return "", fmt.Errorf("%s: no item %s of %d", path, step, len(v))
			}
			value = v[i]
		default:
			return "", fmt.Errorf("%s: nothing is below %v", path, value)
		}
	}
	if text, ok := value.(string); ok {
		return text, nil
	}
	text, err := json.Marshal(value)
	return string(text), err
}

var keys = regexp.MustCompile(`\b([0-9a-f]{64}|[0-9a-f]{12})\b`)

// mask copies a file and replaces every key by KEY, because keys change with every
// recipe, lock or step: mask FILE COPY.
func mask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mask FILE COPY")
	}
	text := keys.ReplaceAllString(ts.ReadFile(args[0]), "KEY")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
}

// passed stores a result for the cells of a recipe, like an earlier run: passed RECIPE
// [AXIS=VALUE]... The recipe is built in or in BUILDER_RECIPES.
func passed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: passed RECIPE [AXIS=VALUE]...")
	}
	entries, known := lockedCells(ts, args)
	for _, e := range entries {
		path := filepath.Join(ts.MkAbs("."), e.ID+".whl")
		ts.Check(os.WriteFile(path, []byte("wheel of "+e.ID), 0o644))
		wheel, err := artifact.Of(path, e.Key())
		ts.Check(err)
		ts.Check(known.Keep(e, run.Result{
			Artifacts: []artifact.Artifact{wheel},
			Verdicts:  []verdict.Verdict{{Gate: "import", Status: verdict.Pass, Evidence: "it imports"}},
			Steps:     []report.Step{{Name: "build", Seconds: 465}},
			Gates:     gate.Digest(),
		}))
		ts.Check(os.Remove(path))
	}
}

// sealed stores a result with a real wheel, or with the archive that the recipe makes
// instead. Its gates passed, and its statements are signed by the host's key: sealed
// RECIPE [AXIS=VALUE]...
func sealed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: sealed RECIPE [AXIS=VALUE]...")
	}
	ts.Check(sealCells(ts.Getenv("BUILDER_RECIPES"), ts.Getenv("BUILDER_HOME"), args))
}

// sealCells implements sealed for the recipes and the state directory of a host.
func sealCells(site, home string, args []string) error {
	entries, known, err := cellsOf(site, home, args)
	if err != nil {
		return err
	}
	keys := keysOf(home)
	trust, err1 := keys.Trusted()
	key, err2 := keys.Signing()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	sealer := run.NewSealer(key, trust, host.Engines{}.Describe(), version)
	dir, err := os.MkdirTemp(home, "sealed-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, e := range entries {
		if err := sealCell(filepath.Join(dir, e.Recipe+"-1.0-py3-none-any.whl"), e, known, sealer); err != nil {
			return err
		}
	}
	return nil
}

// sealCell writes the wheel of a cell to path and stores it as a passing result.
func sealCell(path string, e lock.Entry, known *results.Results, sealer run.Sealer) error {
	err := sbomtest.Write(path, e, wheeltest.File{Name: e.Recipe + "/__init__.py", Text: "name = '" + e.ID + "'\n"})
	if tree := e.Expect.Tree; tree != "" {
		path = filepath.Join(filepath.Dir(path), tree)
		err = sourcetreetest.Write(path, map[string]string{e.ID + "/tiny.py": "name = '" + e.ID + "'\n"})
	}
	if err != nil {
		return err
	}
	a, err := artifact.Of(path, e.Key())
	if err != nil {
		return err
	}
	r := run.Result{Artifacts: []artifact.Artifact{a}, Started: time.Now(), Finished: time.Now(), Gates: gate.Digest()}
	for _, g := range gate.Wanted(e.Expect, gate.Container) {
		r.Verdicts = append(r.Verdicts, verdict.Verdict{Gate: g.Name, Status: verdict.Pass, Evidence: "seen"})
	}
	if r.Attestations, err = sealer.Seal(e, r, r.Verdicts); err != nil {
		return err
	}
	return known.Keep(e, r)
}

// files checks the number of files in a directory: files DIR N.
func files(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: files DIR N")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := strconv.Itoa(len(entries)); got != args[1] {
		ts.Fatalf("%s holds %s files, want %s: %v", args[0], got, args[1], entries)
	}
}

// unseen checks that no file below the directories contains a text: unseen TEXT DIR...
// The directories must contain files.
func unseen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: unseen TEXT DIR...")
	}
	read := 0
	for _, dir := range args[1:] {
		ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if bytes.Contains(data, []byte(args[0])) {
				ts.Fatalf("%q is in %s", args[0], path)
			}
			read++
			return err
		}))
	}
	if read == 0 {
		ts.Fatalf("there is no file below %v", args[1:])
	}
}

// serve serves a directory over HTTP until the script ends and sets SERVED to the
// address: serve DIR.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve DIR")
	}
	server := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	ts.Defer(server.Close)
	ts.Setenv("SERVED", server.URL)
	ts.Setenv("LISTENER", server.Listener.Addr().String())
	ts.Setenv("no_proxy", "127.0.0.1")
}

// repository serves a registry until the script ends and sets REPOSITORY to the address
// of a repository: repository [plain]. A plain registry has no referrers API.
func repository(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: repository [plain]")
	}
	address, stop := ocitest.Serve(len(args) == 0)
	ts.Defer(stop)
	ts.Setenv("REPOSITORY", address)
}

// lockedCells returns the chosen cells of a recipe and the results in the script's
// state directory.
func lockedCells(ts *testscript.TestScript, args []string) ([]lock.Entry, *results.Results) {
	entries, known, err := cellsOf(ts.Getenv("BUILDER_RECIPES"), ts.Getenv("BUILDER_HOME"), args)
	ts.Check(err)
	return entries, known
}

// cellsOf returns the cells of a site chosen by RECIPE [AXIS=VALUE]... and the results
// in a state directory.
func cellsOf(site, home string, args []string) ([]lock.Entry, *results.Results, error) {
	cat, err := catalogue.Load(site, knownNames())
	if err != nil {
		return nil, nil, err
	}
	of := plan.Selection{Filter: matrix.Filter{}}
	if of.Recipe, err = recipe.Find(cat.Recipes, args[0]); err != nil {
		return nil, nil, err
	}
	for _, arg := range args[1:] {
		axis, value, _ := strings.Cut(arg, "=")
		of.Filter[axis] = value
	}
	drafts, err := assemble.Choose(cat, of.Recipe, of.Filter)
	if err != nil {
		return nil, nil, err
	}
	f, err := cat.Locks(home).Read(of.Recipe.Name)
	if err != nil {
		return nil, nil, err
	}
	entries, err := lock.Assemble(drafts, f, plan.Revision())
	if err != nil {
		return nil, nil, err
	}
	s, err := store.Open(filepath.Join(home, "store"))
	return entries, results.Signed(s, keysOf(home)), err
}

// keysOf returns the keys of a state directory.
func keysOf(dir string) signing.Keys {
	return signing.Keys{Home: dir, Note: func(string, ...any) {}}
}

// damage overwrites every file of the store with other bytes: damage.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: damage")
	}
	files, err := filepath.Glob(filepath.Join(ts.Getenv("BUILDER_HOME"), "store", "sha256", "*", "*"))
	ts.Check(err)
	for _, path := range files {
		data, err := os.ReadFile(path)
		ts.Check(err)
		ts.Check(errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, bytes.ToUpper(data), 0o444)))
	}
}

// TestHelp checks that every command has a summary, and that its help describes every
// flag.
func TestHelp(t *testing.T) {
	bare(t)
	var visit func(path []string, commands []*cli.Command)
	visit = func(path []string, commands []*cli.Command) {
		for _, command := range commands {
			if command.Hidden {
				continue
			}
			words := append(slices.Clone(path), command.Name)
			var stdout, stderr bytes.Buffer
			args := append(slices.Clone(words), "--help")
			err := wired(args, &stdout, &stderr).RunContext(t.Context(), args)
			check.That(t, err == nil && stderr.Len() == 0, "%s --help: %v, stderr %q", strings.Join(words, " "), err, stderr.String())
			check.That(t, command.Usage != "" && strings.Contains(stdout.String(), command.Usage),
				"%s --help does not say what it is for", strings.Join(words, " "))
			for _, f := range command.Flags {
				usage := f.(cli.DocGenerationFlag).GetUsage()
				if usage == "" || !strings.Contains(stdout.String(), "--"+f.Names()[0]) {
					t.Errorf("%s --help does not explain --%s", strings.Join(words, " "), f.Names()[0])
				}
			}
			visit(words, command.Subcommands)
		}
	}
	visit([]string{"builder"}, wired([]string{"builder"}, io.Discard, io.Discard).Commands)
}

// A result cut off by a full disk is an error.
func TestResultThatCannotBeWritten(t *testing.T) {
	bare(t)
	for _, args := range [][]string{
		{"plan", "horovod"},
		{"plan", "horovod", "--json"},
		{"--version"},
		{"engine", "status"},
	} {
		var stderr bytes.Buffer
		code := Main(append([]string{"builder"}, args...), fullDisk{}, &stderr)
		check.That(t, code == int(diag.Unexpected) && strings.Count(stderr.String(), "no space left") == 1,
			"builder %s: exit code %d, stderr %q", strings.Join(args, " "), code, stderr.String())
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// tarball packs a directory as a reproducible source archive: tarball DIR FILE.
func tarball(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tarball DIR FILE")
	}
	dir := ts.MkAbs(args[0])
	f, err := os.Create(ts.MkAbs(args[1]))
	ts.Check(err)
	out := tar.NewWriter(f)
	entries, err := os.ReadDir(dir) // sorted
	ts.Check(err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		ts.Check(err)
		ts.Check(out.WriteHeader(&tar.Header{Name: args[0] + "/" + e.Name(), Size: int64(len(data)), Mode: 0o644, Typeflag: tar.TypeReg}))
		_, err = out.Write(data)
		ts.Check(err)
	}
	ts.Check(errors.Join(out.Close(), f.Close()))
}
