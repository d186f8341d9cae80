package app

import (
	"os"
	"path/filepath"

	"builder/internal/base/diag"
)

// AbsentPath returns an error if the path of --to is empty or exists.
func AbsentPath(to string) error {
	if to == "" {
		return diag.Errorf(diag.Usage, "--to is missing").WithHint("name a path that does not exist yet: --to DIR")
	}
	if _, err := os.Lstat(to); err == nil {
		return diag.Errorf(diag.Usage, "--to: %s already exists", to).WithHint("name a path that does not exist, or remove it first")
	}
	return nil
}

// AbsentFile is [AbsentPath] for a path whose directory is not made.
func AbsentFile(to string) error {
	if err := AbsentPath(to); err != nil {
		return err
	}
	above := filepath.Dir(to)
	if info, err := os.Stat(above); err != nil || !info.IsDir() {
		return diag.Errorf(diag.Usage, "--to: %s is not a directory", above).WithHint("make it first, or name a path in a directory that exists")
	}
	return nil
}

// HomeDir returns BUILDER_HOME, or builder in the user's cache directory.
func HomeDir() (string, error) {
	if home := os.Getenv("BUILDER_HOME"); home != "" {
		if info, err := os.Stat(home); err == nil && !info.IsDir() {
			return "", diag.Errorf(diag.Usage, "BUILDER_HOME: %s is not a directory", home)
		}
		return filepath.Abs(home)
	}
	home, err := DefaultHome()
	if err != nil {
		return "", diag.Errorf(diag.Usage, "no state directory: %w", err).WithHint("set BUILDER_HOME")
	}
	return home, nil
}

// DefaultHome returns the home used without BUILDER_HOME.
func DefaultHome() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "builder"), nil
}

// CheckOut returns an error if dir is a file, before any work starts.
func CheckOut(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return diag.Errorf(diag.Usage, "--out: %s is not a directory", dir)
	}
	return nil
}
