package lock_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
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

// Write refuses a lock that could not be read back.
func TestWriteRefusesWhatDecodeWould(t *testing.T) {
	for name, spoil := range map[string]func(*lock.File){
		"recipe":       func(f *lock.File) { f.Recipe = "" },
		"digest":       func(f *lock.File) { f.Images[1].Digest = "sha256:0" },
		"file":         func(f *lock.File) { f.Sources[0].Filename = "../x" },
		"commit":       func(f *lock.File) { f.Sources[0].Commit = "main" },
		"no files":     func(f *lock.File) { f.Python[0].Files = nil },
		"no packages":  func(f *lock.File) { f.Images[0].Packages = nil },
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
