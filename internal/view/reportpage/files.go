package reportpage

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"builder/internal/base/atomicfile"
	"builder/internal/view/report"
)

// WriteFiles writes report.html, report.md and junit.xml beside run.json, for people
// and CI servers.
func WriteFiles(dir string, r report.Run, o Options) error {
	o.Link = func(path string) string { return seenFrom(dir, path) }
	page := atomicfile.Make(filepath.Join(dir, "report.html"), func(w io.Writer) error { return Write(w, r, o) })
	results, err := report.JUnit(r)
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, "junit.xml"), results)
	}
	return errors.Join(page, err, atomicfile.Write(filepath.Join(dir, "report.md"), []byte(report.Markdown(r))))
}

// seenFrom returns the relative slash-separated path from a directory to a regular
// file, or "" if no such file exists.
func seenFrom(dir, path string) string {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	from, err1 := filepath.Abs(dir)
	to, err2 := filepath.Abs(path)
	way, err3 := filepath.Rel(from, to)
	if errors.Join(err1, err2, err3) != nil {
		return ""
	}
	return filepath.ToSlash(way)
}
