package gate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// specimen describes an artifact: its promises, the wheel with its libraries or the
// archive in its place, the files beside it, and the container for its installation.
type specimen struct {
	expect    recipe.Expect
	wheel     wheeltest.Wheel
	extension string // path of the library built by the recipe
	libraries map[string]*elftest.Library
	damage    func(file []byte) []byte // changes the wheel's file
	archive   archived                 // beside the wheel, or in its place
	source    *original
	// sourceless removes the source tree. Without it and without a source, the source
	// holds the files of the wheel.
	sourceless bool
	box        container
	tests      container // box with upstream's tests
	stock      container // box with upstream's release in place of the wheel
}

// archived is the archive beside the wheel. Without a name there is none.
type archived struct {
	name    string
	entries []member // nil for upstream's layout
	plain   []byte   // content in place of the entries
	damage  func(file []byte) []byte
}

// library returns the library built by the recipe.
func (s *specimen) library() *elftest.Library { return s.libraries[s.extension] }

// subject writes the files and returns the subject.
func (s *specimen) subject(t *testing.T) Subject {
	t.Helper()
	if s.expect.Tree != "" {
		subject := Subject{Artifact: filepath.Join(t.TempDir(), s.archive.name), Expect: s.expect, Source: s.source.write(t), Box: s.box}
		write(t, subject.Artifact, s.archiveBytes(t))
		return subject
	}
	for _, name := range slices.Sorted(maps.Keys(s.libraries)) {
		s.wheel.Files = append(s.wheel.Files, wheeltest.File{Name: name, Text: string(s.libraries[name].Bytes()), Mode: 0o755})
	}
	if s.box.mapped == nil {
		s.box.mapped = s.maps()
	}
	s.tests.mapped = s.box.mapped
	data := s.wheel.Bytes()
	if s.damage != nil {
		data = s.damage(data)
	}
	at := t.TempDir()
	subject := Subject{Artifact: filepath.Join(at, s.wheel.Name), Expect: s.expect, Unpacked: NewUnpacked(), Box: s.box, Tests: s.tests, Stock: s.stock}
	t.Cleanup(func() {
		err := subject.Unpacked.Close()
		check.That(t, err == nil, "%v", err)
	})
	write(t, subject.Artifact, data)
	if !s.sourceless {
		subject.Source = s.sourceOfWheel().write(t)
	}
	if s.archive.name != "" {
		beside := filepath.Join(at, s.archive.name)
		write(t, beside, s.archiveBytes(t))
		subject.Beside = []string{beside, filepath.Join(at, "nccl.log")}
	}
	return subject
}

// maps returns the libraries of the wheel as a process maps them.
func (s *specimen) maps() (all []mappedFile) {
	for name, l := range s.libraries {
		all = append(all, mappedFile{"/env/lib/python3.11/site-packages/" + name, fmt.Sprintf("%x", sha256.Sum256(l.Bytes()))})
	}
	return all
}

// sourceOfWheel returns the source of the wheel.
func (s *specimen) sourceOfWheel() *original {
	if s.source != nil {
		return s.source
	}
	all := &original{entries: []member{file("source/NEWS", "old\n")}, patches: []patch.Patch{
		{Name: "news", Edits: []patch.Edit{{Kind: patch.Replace, File: "NEWS", Search: "old", Replace: "new", Count: 1}}},
	}}
	for _, f := range slices.Concat(s.wheel.Files, s.wheel.Unlisted) {
		all.entries = append(all.entries, file("source/"+f.Name, f.Text))
	}
	return all
}

func (s *specimen) archiveBytes(t *testing.T) []byte {
	entries := s.archive.entries
	switch {
	case entries == nil && isRCCL(s.extension):
		entries = []member{file("rccl/lib/librccl.so.1", string(s.library().Bytes())), link("rccl/lib/librccl.so", "librccl.so.1")}
	case entries == nil:
		entries = layout(string(s.library().Bytes()))
	}
	plain := s.archive.plain
	if plain == nil {
		plain = tarOf(t, entries...)
	}
	data := compressed(t, s.archive.name, plain)
	if s.archive.damage != nil {
		data = s.archive.damage(data)
	}
	return data
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	must.Succeed(t, os.WriteFile(path, data, 0o600))
}

// verdicts runs every applicable gate.
func (s *specimen) verdicts(t *testing.T) []verdict.Verdict {
	t.Helper()
	return verdictsOn(s.subject(t))
}

// shared is like verdicts, with a box that the gates share.
func (s *specimen) shared(t *testing.T) []verdict.Verdict {
	t.Helper()
	subject := s.subject(t)
	subject.Box = Share(s.box, 1)
	return verdictsOn(subject)
}

func verdictsOn(subject Subject) []verdict.Verdict {
	var all []verdict.Verdict
	for _, g := range Wanted(subject.Expect, Tests) {
		all = append(all, g.Check(context.Background(), subject))
	}
	return all
}

// container is a box with libraries and with answers to commands, by name. Answers to
// questions have the output that the program's module would print.
type container struct {
	played
	libraries map[string][]string // soname to exports, NAME or NAME@VERSION
	answers   map[string]Result
	failure   error
}

func (c container) Run(_ context.Context, asked Command) (Result, error) {
	if c.failure != nil {
		return Result{}, c.failure
	}
	switch {
	case asked.Files["ranks.py"] != "":
		if answer, ok := c.answers["ranks.py of "+asked.Name]; ok {
			return answer, nil
		}
		return c.ranks(asked.Stdin, "cpu", c.alone), nil
	case asked.Name == "elf-symbols" && !c.has("elf-symbols"):
		return c.resolve(asked.Files["question.json"]), nil
	}
	if answer, ok := c.answers[asked.Name]; ok {
		return answer, nil
	}
	return Result{Exit: 127, Output: asked.Name + ": not found"}, nil
}

func (c container) has(name string) bool {
	_, ok := c.answers[name]
	return ok
}

// resolve answers like resolve.py.
func (c container) resolve(question string) Result {
	var ask wanted
	if err := json.Unmarshal([]byte(question), &ask); err != nil {
		return Result{Exit: 1, Output: err.Error()}
	}
	answer := resolved{Unloaded: map[string]string{}, Missing: []string{}, Found: map[string]int{}}
	for _, soname := range ask.Needed {
		if c.libraries[soname] == nil {
			answer.Unloaded[soname] = soname + ": cannot open shared object file: No such file or directory"
		}
	}
	for _, symbol := range ask.Symbols {
		name := strings.TrimSuffix(symbol[0]+"@"+symbol[1], "@")
		i := slices.IndexFunc(ask.Needed, func(soname string) bool { return slices.Contains(c.libraries[soname], name) })
		if i < 0 {
			answer.Missing = append(answer.Missing, name)
		} else {
			answer.Found[ask.Needed[i]]++
		}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return Result{Exit: 1, Output: err.Error()}
	}
	return Result{Output: string(text) + "\n"}
}

// installs adds the libraries needed by l to the container. Each symbol is in the
// library of its version, otherwise in the library that home names for its prefix.
func (c *container) installs(l *elftest.Library, home map[string]string) {
	c.libraries = map[string][]string{}
	for _, soname := range l.Needed {
		c.libraries[soname] = []string{}
	}
	for _, s := range l.Undefined {
		soname := s.Library
		for prefix, library := range home {
			if s.Version == "" && strings.HasPrefix(s.Name, prefix) {
				soname = library
			}
		}
		c.libraries[soname] = append(c.libraries[soname], strings.TrimSuffix(s.Name+"@"+s.Version, "@"))
	}
}
