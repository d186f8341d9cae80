package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/input/pypi"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
)

// A fault is a failure during the publication of a wheel and its expected result. The
// rows are the tables of docs/publish-faults.md. They need several processes, a full disk
// or uv. The tests of internal/input/oci, internal/publishing/index and
// internal/publishing/upload cause the other faults.
type fault struct {
	what string       // the text of the page
	make func(*scene) // causes the fault and registers its repair
	exit diag.Code    // exit code of builder, or killed
	says string       // pattern of the error on stderr
	hint string       // hint on stderr; HOST and N stand for a server and a number
	left remains      // state of the destination afterwards
}

// killed stands for the missing exit code of a killed process.
const killed diag.Code = -1

// Remains is the state of a wheel at a destination. Any other state is half a
// publication, which must never occur.
type remains string

const (
	nothing remains = "nothing"
	whole   remains = "the wheel, whole"
	partly  remains = "the wheel, whole, not yet under every name" // tags or pages are missing
)

// A kind is a kind of destination with its possible faults.
type kind struct {
	title  string
	to     string
	open   func(*scene)
	faults []fault
}

func kinds() []kind {
	return []kind{
		{"A directory", "file:DIR", (*scene).openDirectory, directoryFaults()},
		{"A registry", "oci://HOST/REPOSITORY", (*scene).openRegistry, registryFaults()},
		{"An upload server", "pypi:URL", (*scene).openServer, serverFaults()},
	}
}

// TestPublishFaults causes every fault while the real program publishes. The program
// must end with the exit code of the row and print the error and its hint. Nothing may
// be half published. After the repair the same command must publish, and a second time
// report that the wheel exists. The password must never be printed.
func TestPublishFaults(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // the inspecting client has no password
	made := newWorkshop(t)
	real := os.Getenv("BUILDER_TEST_SERVERS") == "1"
	if real {
		_, err := pypi.EnsureUV(t.Context(), made.home, t.Logf, pypi.Options{NoInstall: true})
		must.Succeed(t, err)
	}
	for _, k := range kinds() {
		scheme, _, _ := strings.Cut(k.to, ":")
		for _, f := range k.faults {
			t.Run(scheme+" "+f.what, func(t *testing.T) {
				if scheme == "pypi" && !real {
					t.Skip("BUILDER_TEST_SERVERS=1 installs uv and tries uploads")
				}
				t.Parallel()
				s := made.scene(t)
				k.open(s)
				f.make(s)
				f.judge(s)
				s.mend()
				s.publishAgain()
			})
		}
	}
}

// judge publishes during the fault.
func (f fault) judge(s *scene) {
	s.Helper()
	if s.other != "" {
		s.publishBoth(f)
	} else {
		s.judge(f, s.publish(s.cell))
	}
	left := s.look()
	check.That(s, left == f.left, "left is %s, want %s", left, f.left)
}

// judge compares the outcome with a row.
func (s *scene) judge(f fault, got outcome) {
	s.Helper()
	s.inspect(got)
	check.That(s, got.exit == f.exit && regexp.MustCompile(f.says).MatchString(got.stderr) && f.hinted(got.stderr),
		"exit code %d, want %d with %q and %q\n%s%s", got.exit, f.exit, f.says, f.hint, got.stdout, got.stderr)
}

// hinted reports whether stderr has exactly the expected hint.
func (f fault) hinted(stderr string) bool {
	if f.hint == "" {
		return !strings.Contains("\n"+stderr, "\nhint: ")
	}
	words := strings.NewReplacer("HOST", `[a-z0-9.]+:[0-9]+`, " N ", ` [0-9]+ `).Replace(regexp.QuoteMeta(f.hint))
	return regexp.MustCompile(`(?m)^hint: ` + words + `$`).MatchString(stderr)
}

// inspect checks the rules for all output.
func (s *scene) inspect(got outcome) {
	s.Helper()
	all := got.stdout + got.stderr
	for _, unwanted := range append(secrets(), "goroutine ", "\x1b") {
		check.That(s, !strings.Contains(all, unwanted), "%q is printed:\n%s", unwanted, all)
	}
	check.That(s, got.exit <= 0 || strings.Contains("\n"+got.stderr, "\nerror: "), "exit code %d without an error:\n%s", got.exit, all)
}

// publishAgain publishes twice: the first must succeed, and the second has nothing to
// do.
func (s *scene) publishAgain() {
	s.Helper()
	for _, says := range []string{`published|was there`, `was there`} {
		got := s.publish(s.cell)
		s.inspect(got)
		check.That(s, got.exit == diag.OK && regexp.MustCompile(`(?m)^tiny-1\.0-py3-none-any\.whl +(`+says+`) `).MatchString(got.stdout),
			"once more: exit code %d, want %q\n%s%s", got.exit, says, got.stdout, got.stderr)
		check.Same(s, "once more: left", whole, s.look())
	}
}

// publishBoth publishes the cell and its rival at the same time. One succeeds and the
// other ends like the row. The successful one is the scene's cell from then on.
func (s *scene) publishBoth(f fault) {
	s.Helper()
	other := make(chan outcome)
	go func() { other <- s.publish(s.other) }()
	first, second := s.publish(s.cell), <-other
	if first.exit != diag.OK {
		s.cell, s.other, first, second = s.other, s.cell, second, first
	}
	s.inspect(first)
	s.judge(f, second)
	check.That(s, first.exit == diag.OK, "nobody has published:\n%s\n%s", first.stderr, second.stderr)
}

const (
	faultsPage  = "../../docs/publish-faults.md"
	faultsBegin = "<!-- faults: written by go test ./cmd/builder -run PublishFaults -update -->\n"
	faultsEnd   = "<!-- end of faults -->\n"
)

// TestPublishFaultsAreDocumented compares the rows with the page, or updates the page.
func TestPublishFaultsAreDocumented(t *testing.T) {
	golden.CheckSection(t, faultsPage, faultsBegin, faultsEnd, faultTables())
}

func faultTables() string {
	var b strings.Builder
	for _, k := range kinds() {
		fmt.Fprintf(&b, "\n**%s, `%s`**\n\n| fault | exit code | what is left | what to do |\n| --- | --- | --- | --- |\n", k.title, k.to)
		for _, f := range k.faults {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.what, f.code(), f.left, f.remedy())
		}
	}
	return b.String() + "\n"
}

func (f fault) code() string {
	if f.exit == killed {
		return "none"
	}
	return fmt.Sprint(int(f.exit))
}

func (f fault) remedy() string {
	switch {
	case f.hint != "":
		return f.hint
	case f.exit == diag.OK:
		return "nothing"
	}
	return "run the same command again"
}

// No row may occur twice, and every error must have a hint.
func TestPublishFaultsSayWhatToDo(t *testing.T) {
	for _, k := range kinds() {
		var seen []string
		for _, f := range k.faults {
			check.That(t, !slices.Contains(seen, f.what), "%s: %q stands there twice", k.to, f.what)
			seen = append(seen, f.what)
			check.That(t, f.exit <= 0 || (f.says != "" && (f.exit == diag.Interrupted || f.hint != "")),
				"%s: %q does not say what happened, or what to do", k.to, f.what)
		}
	}
}
