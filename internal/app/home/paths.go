package home

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"builder/internal/base/diag"
	"builder/internal/base/owned"
)

// AbsentPath returns an error if the path of --to is empty or exists.
func AbsentPath(to string) error {
	if to == "" {
		return diag.Errorf(diag.Usage, "--to is missing").WithHint("name a path that does not exist yet: --to PATH")
	}
	if _, err := os.Lstat(to); err == nil {
		return diag.Errorf(diag.Usage, "--to: %s already exists", to).WithHint("name a path that does not exist, or remove it first")
	}
	return nil
}

// AbsentFile is [AbsentPath] for a path whose directory is not made, and must be writable.
func AbsentFile(to string) error {
	if err := AbsentPath(to); err != nil {
		return err
	}
	above := filepath.Dir(to)
	if info, err := os.Stat(above); err != nil || !info.IsDir() {
		return diag.Errorf(diag.Usage, "--to: %s is not a directory", above).WithHint("make it first, or name a path in a directory that exists")
	}
	probe, err := os.CreateTemp(above, ".builder-*") // minutes of work come before the file
	if err != nil {
		if problem, ok := errors.AsType[*fs.PathError](err); ok {
			err = problem.Err // its path is that of the probe
		}
		return diag.Errorf(diag.Usage, "--to: cannot write to %s: %w", above, err).WithHint(elsewhere)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Closed returns [Dir], closed to other users.
func Closed(note func(format string, args ...any)) (string, error) {
	home, err := Dir()
	if err != nil {
		return "", err
	}
	return home, closeHome(home, note)
}

// closeHome closes an existing home to other users. It refuses a home in which another
// user can have put programs, keys or locks. Every first file of a home makes it closed.
func closeHome(home string, note func(format string, args ...any)) error {
	info, err := os.Stat(home)
	if err != nil {
		return nil // nothing is in it
	}
	const hint = "name a directory of your own: BUILDER_HOME=DIR"
	if err := owned.Mine(home, info); err != nil {
		return diag.Errorf(diag.Usage, "BUILDER_HOME: %w, who could replace its programs and keys", err).WithHint(hint)
	}
	if content, err := os.ReadDir(home); owned.Shared(info) && (err != nil || len(content) > 0) {
		return diag.Errorf(diag.Usage, "BUILDER_HOME: other users can write to %s, and could have replaced its programs and keys", home).
			WithHint("%s; if you trust everything in it: chmod 700 %s", hint, home)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	err = os.Chmod(home, info.Mode()&^0o077)
	if err == nil {
		note("closed %s to other users: its mode was %04o", home, info.Mode().Perm())
	} else if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) { // others can only read
		return diag.Errorf(diag.Usage, "BUILDER_HOME: %w", err)
	}
	return nil
}

// Nowhere is the home of a user without one, such as nobody in a container: it holds
// nothing, and nothing can be written there. Verbs that only read need no more.
const Nowhere = "/proc/no-home-for-builder"

// Dir returns BUILDER_HOME, builder in the user's cache directory, or [Nowhere].
func Dir() (string, error) {
	if home := os.Getenv("BUILDER_HOME"); home != "" {
		if info, err := os.Stat(home); err == nil && !info.IsDir() {
			return "", diag.Errorf(diag.Usage, "BUILDER_HOME: %s is not a directory", home)
		}
		return filepath.Abs(home)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Nowhere, nil
	}
	return filepath.Join(cache, "builder"), nil
}

// CheckDir returns an error if the value of a flag is a file, before any work starts.
func CheckDir(flag, dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return diag.Errorf(diag.Usage, "%s: %s is not a directory", flag, dir)
	}
	return nil
}

// Denied turns errors of permission on files into usage errors. They and errors of a full
// disk get a hint, unless they have one.
func Denied(err error) error {
	all := diag.All(err)
	for _, err := range all {
		switch {
		case err.Hint != "":
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
			err.Hint = "make room on the disk of this file, or " + elsewhere + ", and give the same command again"
		case refuses(err.Err):
			err.Hint = elsewhere
			if err.Code == diag.Unexpected {
				err.Code = diag.Usage
			}
		}
	}
	return diag.Joined(all)
}

const elsewhere = "name a directory that you can write to (BUILDER_HOME for the state directory, --out or --to for results)"

// refuses reports whether an error says that this user may not write to a path.
func refuses(err error) bool {
	problem, ok := errors.AsType[*fs.PathError](err)
	return ok && (errors.Is(problem.Err, syscall.EROFS) || errors.Is(problem.Err, fs.ErrPermission) || problem.Op == "mkdir")
}
