package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/testutil/golden"
)

// A fault is what may go wrong while a wheel is published, and what becomes of it.
// The table of docs/publish-faults.md is made of these rows.
type fault struct {
	what string       // as the page has it
	make func(*scene) // brings it about, and tells the scene how it goes away
	exit diag.Code    // of builder, or killed
	says string       // a pattern of stderr: where, and what
	hint string       // on stderr: what to do; HOST and N stand for a server and a number
	left remains      // at the destination, afterwards
}

// killed stands for the exit code of a process that had no time for one.
const killed diag.Code = -1

// Remains is what a destination holds of a wheel. What is neither of these is half
// a publication, and there must never be one.
type remains string

const (
	nothing remains = "nothing"
	whole   remains = "the wheel, whole"
	partly  remains = "the wheel, whole, not yet under every name" // tags, or pages
)

// A kind is a way to publish, with all that may go wrong there.
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

// TestPublishFaults brings every fault about, for the program as users run it: it
// ends with the exit code of the row and says where, what and what to do; nothing
// is half published; and once the fault is gone the same command publishes, and
// another time finds that the wheel is there. A password is never printed.
func TestPublishFaults(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // for those who look, who have no password
	made := newWorkshop(t)
	for _, k := range kinds() {
		scheme, _, _ := strings.Cut(k.to, ":")
		for _, f := range k.faults {
			t.Run(scheme+" "+f.what, func(t *testing.T) {
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

// judge publishes while the fault is there.
func (f fault) judge(s *scene) {
	s.Helper()
	if s.rival != "" {
		s.publishBoth(f)
	} else {
		s.judge(f, s.publish(s.cell))
	}
	if left := s.look(); left != f.left {
		s.Errorf("left is %s, want %s", left, f.left)
	}
}

// judge compares what the program said and did with a row.
func (s *scene) judge(f fault, got outcome) {
	s.Helper()
	s.inspect(got)
	if got.exit != f.exit || !regexp.MustCompile(f.says).MatchString(got.stderr) || !f.hinted(got.stderr) {
		s.Errorf("exit code %d, want %d with %q and %q\n%s%s", got.exit, f.exit, f.says, f.hint, got.stdout, got.stderr)
	}
}

// hinted reports whether the program said what to do, in these words.
func (f fault) hinted(stderr string) bool {
	if f.hint == "" {
		return !strings.Contains("\n"+stderr, "\nhint: ")
	}
	words := strings.NewReplacer("HOST", `[a-z0-9.]+:[0-9]+`, " N ", ` [0-9]+ `).Replace(regexp.QuoteMeta(f.hint))
	return regexp.MustCompile(`(?m)^hint: ` + words + `$`).MatchString(stderr)
}

// inspect demands of everything that is printed what holds for all of it.
func (s *scene) inspect(got outcome) {
	s.Helper()
	all := got.stdout + got.stderr
	for _, unwanted := range append(secrets(), "goroutine ", "\x1b") {
		if strings.Contains(all, unwanted) {
			s.Errorf("%q is printed:\n%s", unwanted, all)
		}
	}
	if got.exit > 0 && !strings.Contains("\n"+got.stderr, "\nerror: ") {
		s.Errorf("exit code %d without an error:\n%s", got.exit, all)
	}
}

// publishAgain publishes twice: all is well, and then there is nothing to do.
func (s *scene) publishAgain() {
	s.Helper()
	for _, says := range []string{`published|was there`, `was there`} {
		got := s.publish(s.cell)
		s.inspect(got)
		if got.exit != diag.OK || !regexp.MustCompile(`(?m)^tiny-1\.0-py3-none-any\.whl +(`+says+`) `).MatchString(got.stdout) {
			s.Errorf("once more: exit code %d, want %q\n%s%s", got.exit, says, got.stdout, got.stderr)
		}
		if left := s.look(); left != whole {
			s.Errorf("once more: left is %s", left)
		}
	}
}

// publishBoth publishes the cell and its rival at once. One of them succeeds, and
// the other as the row says; the one that succeeded is that of the scene from then
// on.
func (s *scene) publishBoth(f fault) {
	s.Helper()
	other := make(chan outcome)
	go func() { other <- s.publish(s.rival) }()
	first, second := s.publish(s.cell), <-other
	if first.exit != diag.OK {
		s.cell, s.rival, first, second = s.rival, s.cell, second, first
	}
	s.inspect(first)
	s.judge(f, second)
	if first.exit != diag.OK {
		s.Errorf("nobody has published:\n%s\n%s", first.stderr, second.stderr)
	}
}

const (
	faultsPage  = "../../docs/publish-faults.md"
	faultsBegin = "<!-- faults: written by go test ./cmd/builder -run PublishFaults -update -->\n"
	faultsEnd   = "<!-- end of faults -->\n"
)

// TestPublishFaultsAreDocumented compares the rows with the page, or writes it.
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
	return "give the same command again"
}

// TestPublishFaultsSayWhatToDo: a row that stands twice, or an error without a
// remedy, is a gap of the table.
func TestPublishFaultsSayWhatToDo(t *testing.T) {
	for _, k := range kinds() {
		var seen []string
		for _, f := range k.faults {
			if slices.Contains(seen, f.what) {
				t.Errorf("%s: %q stands there twice", k.to, f.what)
			}
			seen = append(seen, f.what)
			if f.exit > 0 && (f.says == "" || f.exit != diag.Interrupted && f.hint == "") {
				t.Errorf("%s: %q does not say what happened, or what to do", k.to, f.what)
			}
		}
	}
}
