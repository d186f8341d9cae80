package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"builder/internal/view/report"
	"builder/internal/view/reportpage"
	"builder/internal/view/term"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// evil contains control sequences of terminals and workflow commands of CI servers.
const evil = "x\x1b[2J\x1b]0;owned\x07\u009b31m\u202e\u200b\b\n::set-output name=a::b\n  ::stop-commands::c\r::add-mask::d\u2028##[set-env name=PATH]e ##vso[task.x]f ftp://me:hush@h/x"

// hostileSite writes a site with hostile texts, a hostile run and hostile files, and
// returns their directory.
func hostileSite(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := strings.TrimSuffix(evil, " ftp://me:hush@h/x") // a recipe cannot contain a URL with a password
	said, err := json.Marshal(text)                        // JSON is valid YAML
	must.Succeed(t, err)
	recipe := fmt.Sprintf(`name: own
summary: %[1]s
homepage: https://example.org
id: own-{{version}}
axes:
  - {name: version, about: %[1]s, values: ["1.0", "2.0", %[1]s]}
compatible:
  - {when: {version: "2.0"}, needs: {version: "1.0"}, because: %[1]s, source: %[1]s}
source: {project: own, version: "{{version}}", released: {"1.0": "2024-01-01"}}
from: {kind: sdist}
image: %[1]s
build: "true"
`, said)
	message := must.Get(json.Marshal(evil))(t)
	run := fmt.Sprintf(`{"schema": 1, "builder": "v1", "started": "2026-03-01T10:00:00Z", "finished": "2026-03-01T11:00:00Z", "cells": [
 {"id": "own-1.0", "key": "k", "recipe": "own", "axes": {"version": %[1]s}, "steps": [{"name": "build", "seconds": 1, "failed": true, "log": "own-1.0/logs/build.log"}],
  "error": {"code": "build", "message": %[1]s, "hint": %[1]s, "cause": [%[1]s], "shell": %[1]s}},
 {"id": "own-2.0", "key": "l", "recipe": "own", "verdicts": [{"gate": "import", "status": "fail", "evidence": %[1]s, "remedy": %[1]s}]}]}`, message)
	library := elftest.Library{Needed: []string{"::set-output name=a::b", "##[set-env]c", evil}, Texts: []string{evil}}.Bytes()
	for name, content := range map[string]string{
		"site/recipes/own.yaml":          recipe,
		"bad/recipes/x.yaml":             "? " + string(said) + "\n: " + string(said) + "\n",
		"run/run.json":                   run,
		"run/own-1.0/logs/build.log":     "cc1plus: out of memory " + evil + "\n" + evil,
		"job.log":                        "NCCL WARN " + evil + "\nfatal error: rccl.h: No such file or directory " + evil,
		"lib.so":                         string(library),
		"against.json":                   `{"schema": ` + string(message) + `}`,
		"dir/" + "::debug::x\n##[x].log": evil,
	} {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644))
	}
	w := wheeltest.Wheel{
		Name:     "own-1.0-cp311-cp311-linux_x86_64.whl",
		Files:    []wheeltest.File{{Name: "own/::debug::x\n##[x].py", Text: "x"}, {Name: "own/_own.so", Text: string(library)}},
		Requires: []string{evil}, Tags: []string{"::set-output name=a::b"},
	}
	must.Succeed(t, os.WriteFile(filepath.Join(dir, w.Name), w.Bytes(), 0o644))
	return dir
}

// obeyed returns the first line that a terminal or a CI server would interpret, or that
// contains the password.
func obeyed(printed string) string {
	for line := range strings.SplitSeq(printed, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") || strings.Contains(line, "##vso[") || strings.Contains(line, "hush") ||
			strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) }) || strings.ToValidUTF8(line, "") != line {
			return line
		}
	}
	return ""
}

// No output may contain control sequences or workflow commands, whatever the content of
// a site, a wheel, a log or a report.
func TestNothingThatIsPrintedIsObeyed(t *testing.T) {
	t.Chdir(hostileSite(t))
	t.Setenv("BUILDER_HOME", t.TempDir())
	t.Setenv("BUILDER_NO_INSTALL", "1")
	t.Setenv("BUILDER_ENGINE", "tcp://me:hush@127.0.0.1:1")
	t.Setenv("BUILDER_MIRROR_DEBIAN", "http://me:hush@127.0.0.1:1")
	for _, args := range [][]string{
		{"list", "--recipes", "site"},
		{"list", "--recipes", "site", "--json"},
		{"list", "--recipes", "bad"},
		{"list", evil},
		{evil},
		{"--" + evil},
		{"plan", "--help", "--recipes", "site"},
		{"plan", "own", "--help", "--recipes", "site"},
		{"plan", "own", "--recipes", "site"},
		{"plan", "own", "--recipes", "site", "--version", "2.0"},
		{"plan", "own", "--recipes", "site", "--version", evil},
		{"plan", evil, "--recipes", "site"},
		{"plan", "nccl", "--" + evil},
		{"lock", "own", "--recipes", "site", "--check"},
		{"run", "own", "--recipes", "site", "--locked", "--set", "source.own=ftp://me:hush@h/x"},
		{"run", "nccl", "--locked", "--set", "ftp://me:hush@h/x", "--progress", "github"},
		{"matrix", "own", "--recipes", "site"},
		{"matrix", "own", "--recipes", "site", "--version", "1.0", "--format", "github"},
		{"gate", "own-1.0-cp311-cp311-linux_x86_64.whl"},
		{"gate", "own-1.0-cp311-cp311-linux_x86_64.whl", "--json"},
		{"gate", "lib.so"},
		{"gate", evil},
		{"verify", "own-1.0-cp311-cp311-linux_x86_64.whl"},
		{"verify", evil},
		{"diagnose", "job.log"},
		{"diagnose", "job.log", "--json"},
		{"diagnose", "dir", "lib.so", "own-1.0-cp311-cp311-linux_x86_64.whl"},
		{"debug", "shell", evil, "--out", "run"},
		{"publish", "own-1.0-cp311-cp311-linux_x86_64.whl", "--to", "ftp://me:hush@h/x"},
		{"run", "nccl", "--from", "https://me:hush@127.0.0.1:1/x", "--trust", evil},
		{"engine", "status"},
	} {
		var stdout, stderr bytes.Buffer
		code := Main(append([]string{"builder"}, args...), &stdout, &stderr)
		for where, printed := range map[string]string{"stdout": stdout.String(), "stderr": stderr.String()} {
			check.Same(t, fmt.Sprintf("%q: exit code %d: the obeyed line of %s", args, code, where), "", obeyed(printed))
		}
		check.That(t, strings.TrimPrefix(args[len(args)-1], "--") != "json" || stdout.Len() == 0 || json.Valid(stdout.Bytes()),
			"%q: no JSON: %s", args, stdout.String())
	}
	run := must.Get(report.Read("run/run.json"))(t)
	must.Succeed(t, reportpage.WriteFiles("run", run, reportpage.Options{Logs: os.DirFS("run"), LogDir: "run"}))
	for _, name := range []string{"report.md", "junit.xml", "report.html"} {
		text, err := os.ReadFile(filepath.Join("run", name))
		check.That(t, err == nil, "%v", err)
		check.That(t, !strings.Contains(string(text), "hush"), "%s holds the password", name)
		line := obeyed(term.ShownJSON(string(text)))
		check.That(t, name != "report.md" || line == "", "%s has the line %q", name, line)
	}
}
