package wheel

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/regular"
)

// madeByInstallers are the files that installers add to .dist-info, or write again.
var madeByInstallers = append([]string{"RECORD", "uv_build.json", "uv_cache.json"}, ofInstallers...)

// CompareInstalled compares the files of the wheel with those installed from it in one of
// the directories of packages. It returns the number of equal files and the differences:
// files that were changed or are missing, and lines of the installed RECORD that the wheel
// does not have. Programs and headers are not compared, because an installer writes them
// to places of its own, nor is a file that no RECORD lists.
func (w *Wheel) CompareInstalled(ctx context.Context, sites []string) (equal int, wrong []string, err error) {
	at := slices.IndexFunc(sites, func(site string) bool {
		_, err := os.Stat(filepath.Join(site, w.DistInfo))
		return err == nil
	})
	if at < 0 {
		return 0, nil, fmt.Errorf("%s is not installed in %s", w.DistInfo, strings.Join(sites, ", "))
	}
	expected, err := w.installedDigests()
	if err != nil {
		return 0, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		switch hash, err := hashOf(filepath.Join(sites[at], filepath.FromSlash(name))); {
		case errors.Is(err, fs.ErrNotExist):
			wrong = append(wrong, fmt.Sprintf("%.300q is missing", name))
		case err != nil: // such as a pipe, or a file of another user
			wrong = append(wrong, fmt.Sprintf("%.300q: %v", name, err))
		case hash != expected[name]:
			wrong = append(wrong, fmt.Sprintf("%.300q was changed", name))
		default:
			equal++
		}
	}
	more, err := w.additional(sites[at], expected)
	return equal, append(wrong, more...), err
}

// installedDigests returns the digests of RECORD by the path below a directory of packages.
func (w *Wheel) installedDigests() (map[string]string, error) {
	text, err := w.ReadFile(w.DistInfo+"/RECORD", maxRecord)
	if err != nil {
		return nil, err
	}
	lines, problems := parseRecord("RECORD", text)
	if len(problems) > 0 {
		return nil, errors.New(problems[0])
	}
	expected := map[string]string{}
	for name, line := range lines {
		scheme, below := w.place(name)
		if scheme == "" && !unhashed(name, w.DistInfo) {
			expected[below] = line.hash
		}
	}
	return expected, nil
}

// additional returns the lines of the installed RECORD about files that neither the wheel
// nor an installer put below the directory of packages.
func (w *Wheel) additional(site string, expected map[string]string) (wrong []string, err error) {
	text, err := regular.ReadFollowed(filepath.Join(site, w.DistInfo, "RECORD"), maxRecord)
	if err != nil {
		return nil, err
	}
	lines, problems := parseRecord(w.DistInfo+"/RECORD", text)
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		clean := path.Clean(name)
		dir, base := path.Split(clean)
		_, known := expected[clean]
		switch {
		case known, strings.HasPrefix(clean, "../"), strings.HasPrefix(clean, "bin/"):
		case path.Base(dir) == "__pycache__" && path.Ext(base) == ".pyc":
		case dir == w.DistInfo+"/" && slices.Contains(madeByInstallers, base):
		default:
			problems = append(problems, fmt.Sprintf("RECORD lists %.300q, which the wheel does not have", name))
		}
	}
	return problems, nil
}

// hashOf returns the digest of a file as RECORD writes it.
func hashOf(file string) (string, error) {
	f, err := regular.Follow(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hashText(h.Sum(nil)), err
}
