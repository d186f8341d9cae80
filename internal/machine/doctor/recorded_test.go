package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"builder/internal/machine/host"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
)

// recorded reads a host from testdata/hosts. The README there describes the format.
func recorded(t *testing.T, name string) host.Host {
	t.Helper()
	archive := must.Get(txtar.ParseFile(filepath.Join("testdata", "hosts", name+".txtar")))(t)
	root, programs := fstest.MapFS{}, map[string]string{}
	for _, f := range archive.Files {
		kind, rest, _ := strings.Cut(f.Name, " ")
		switch kind {
		case "$":
			programs[rest] = string(f.Data)
		case "elf":
			root[rest] = &fstest.MapFile{Data: library(string(f.Data)), Mode: 0o644}
		case "links":
			for line := range strings.Lines(string(f.Data)) {
				from, to, _ := strings.Cut(strings.TrimSpace(line), " -> ")
				root[from] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
			}
		case "dirs":
			for dir := range strings.FieldsSeq(string(f.Data)) {
				root[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			}
		default:
			root[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o755}
		}
	}
	return fake(root, programs)
}

// largeDisk is the disk of a fake host.
var largeDisk = host.Disk{Kind: "ext4", Free: 100e9}

// fake returns a host with the given files and programs, and with [largeDisk].
func fake(root fstest.MapFS, programs map[string]string) host.Host {
	return host.Host{
		FS: root, Path: "/usr/bin",
		Run: func(_ context.Context, name string, args ...string) (string, error) {
			text, installed := programs[strings.Join(append([]string{name}, args...), " ")]
			if !installed {
				return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
			}
			return text, nil
		},
		Dial:     func(context.Context, string, string) error { return syscall.ECONNREFUSED },
		Disk:     func(string) (host.Disk, error) { return largeDisk, nil },
		Writable: func(string) error { return nil },
	}
}

// library builds a shared library from a description in lines.
func library(text string) []byte {
	var l elftest.Library
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "soname":
			l.Soname = rest
		case "text":
			l.Texts = append(l.Texts, rest)
		case "export":
			name, version, _ := strings.Cut(rest, " ")
			l.Exported = append(l.Exported, elftest.From("", version, name)...)
		}
	}
	return l.Bytes()
}

// hosts lists the recorded hosts.
func hosts(t *testing.T) []string {
	t.Helper()
	entries := must.Get(os.ReadDir(filepath.Join("testdata", "hosts")))(t)
	var names []string
	for _, e := range entries {
		if name, is := strings.CutSuffix(e.Name(), ".txtar"); is {
			names = append(names, name)
		}
	}
	return names
}
