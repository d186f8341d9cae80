package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"builder/internal/atomicfile"
	"builder/internal/report"
	"builder/internal/reportpage"
)

// writeViews writes what people and CI servers read of a run beside its run.json:
// report.html and junit.xml.
func writeViews(dir string, r report.Run, o reportpage.Options) error {
	page := atomicfile.Fill(filepath.Join(dir, "report.html"), func(w io.Writer) error { return reportpage.Write(w, r, o) })
	results, err := report.JUnit(r)
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, "junit.xml"), results)
	}
	return errors.Join(page, err)
}

// views writes the views of a run in the directory of its results. They follow from
// run.json: what cannot be written is told and no fault of a cell.
func (w *workspace) views(r report.Run) {
	if err := writeViews(w.out, r, reportpage.Options{Logs: os.DirFS(w.out)}); err != nil {
		w.note("%v", err)
	}
}
