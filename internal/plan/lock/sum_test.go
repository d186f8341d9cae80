package lock_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/base/diag"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// A change of any letter or digit of a lock is detected.
func TestEveryEditIsSeen(t *testing.T) {
	good := tinyLock().Encode()
	for i, c := range good {
		edited := bytes.Clone(good)
		switch {
		case c >= '0' && c <= '9':
			edited[i] = '0' + (c-'0'+1)%10
		case c >= 'a' && c <= 'z':
			edited[i] = 'a' + (c-'a'+1)%26
		default:
			continue
		}
		if _, err := lock.Decode("l", edited); diag.CodeOf(err) != diag.Drift {
			t.Errorf("class %v: %v, of\n%s", diag.CodeOf(err), err, edited[max(0, i-40):min(len(edited), i+40)])
		}
	}
}

// A missing or repeated line is detected.
func TestEveryLineCounts(t *testing.T) {
	lines := strings.SplitAfter(string(tinyLock().Encode()), "\n")
	for i := range lines[:len(lines)-1] {
		less := strings.Join(lines[:i], "") + strings.Join(lines[i+1:], "")
		more := strings.Join(lines[:i+1], "") + strings.Join(lines[i:], "")
		for _, text := range []string{less, more} {
			_, err := lock.Decode("l", []byte(text))
			check.That(t, diag.CodeOf(err) == diag.Drift, "line %d: class %v: %v", i+1, diag.CodeOf(err), err)
		}
	}
}

func TestEdited(t *testing.T) {
	good := string(tinyLock().Encode())
	noSum := regexp.MustCompile(`,\n "sum": .*`)
	for want, text := range map[string]string{
		"": strings.ReplaceAll(good, "\n", "\r\n"), // a change of the layout is not an edit
		"l: the lock was edited by hand: the sum of its pins is ":                        strings.Replace(good, "base:1", "base:2", 1),
		"l: the lock was edited by hand, or an old builder wrote it: the sum is missing": noSum.ReplaceAllString(good, ""),
	} {
		got, err := lock.Decode("l", []byte(text))
		if want == "" {
			diff := cmp.Diff(tinyLock(), got)
			check.That(t, err == nil && diff == "", "%v (-want +got):\n%s", err, diff)
			continue
		}
		errs := diag.All(err)
		if len(errs) != 1 || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, lock.ErrEdited) || !strings.Contains(errs[0].Hint, "--update") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Each invalid pin is reported, together with the edit by hand. An unreadable lock is
// not reported as edited.
func TestWhatIsEdited(t *testing.T) {
	good := string(tinyLock().Encode())
	_, err := lock.Decode("l", []byte(strings.Replace(good, `"sha256:c0`, `"sha512:c0`, 1)))
	errs := diag.All(err)
	check.That(t, len(errs) == 2 && errors.Is(err, lock.ErrEdited) && strings.Contains(errs[0].Error(), "is not a digest"), "got %v", err)
	for _, text := range []string{good[:20], strings.Replace(good, `"schema": 1`, `"schema": 2`, 1), strings.Replace(good, `"recipe"`, `"recept"`, 1)} {
		_, err := lock.Decode("l", []byte(text))
		check.That(t, err != nil && !errors.Is(err, lock.ErrEdited), "got %v", err)
	}
}

// Errors name the fields of the file, not Go types.
func TestFaultsNameNoTypes(t *testing.T) {
	for _, text := range []string{
		"[]", `{"sources": 1}`, `{"sources": [1]}`, `{"sources": [{"size": "1"}]}`, `{"sum": 1}`, `{"schema": "1"}`,
		`{"images": [{"debian": {"suites": [{"priority": "1"}]}}]}`, `{"python": [{"files": [{"sha256": 1}]}]}`, `{"nothing": 1}`,
	} {
		_, err := lock.Decode("l", []byte(text))
		if err == nil || regexp.MustCompile(`lock\.|Go |File|signed|json:`).MatchString(err.Error()) || !strings.HasPrefix(err.Error(), "l:1: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Write refuses a lock that could not be read back.
func TestWriteRefusesWhatDecodeWould(t *testing.T) {
	for name, spoil := range map[string]func(*lock.File){
		"recipe":       func(f *lock.File) { f.Recipe = "" },
		"digest":       func(f *lock.File) { f.Images[1].Digest = "sha256:0" },
		"file":         func(f *lock.File) { f.Sources[0].Filename = "../x" },
		"commit":       func(f *lock.File) { f.Sources[0].Commit = "main" },
		"no files":     func(f *lock.File) { f.Python[0].Files = nil },
		"text":         func(f *lock.File) { f.Python[0].Requirements[0] = "\xff" },
		"answer twice": func(f *lock.File) { f.Sources[1] = f.Sources[0] },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tiny.lock.json")
			f := tinyLock()
			spoil(&f)
			wrote, err := lock.Write(path, f)
			check.That(t, !wrote && diag.CodeOf(err) == diag.Unexpected && strings.HasPrefix(err.Error(), "writing the lock: "+path+": "),
				"%v, class %v: %v", wrote, diag.CodeOf(err), err)
			_, err = os.Stat(path)
			check.That(t, errors.Is(err, os.ErrNotExist), "something was written: %v", err)
		})
	}
}

// The sum covers only the pins and does not depend on their order.
func TestTheSumIsInTheLastLine(t *testing.T) {
	var file struct {
		Sum string `json:"sum"`
	}
	text := tinyLock().Encode()
	must.Succeed(t, json.Unmarshal(text, &file))
	if !bytes.HasSuffix(text, []byte("\n \"sum\": \""+file.Sum+"\"\n}\n")) || len(file.Sum) != 64 {
		t.Errorf("the lock ends in %s", text[len(text)-100:])
	}
}
