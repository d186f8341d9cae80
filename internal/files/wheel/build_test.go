package wheel

import (
	"io/fs"
	"testing"
	"time"

	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

const goodName = "horovod-0.28.1+rocm5.7-cp311-cp311-linux_x86_64.whl"

const (
	info     = "horovod-0.28.1+rocm5.7.dist-info/"
	metadata = "Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1+rocm5.7\nLicense: Apache\n        2.0\n\ntext: of the description\n"
	wheelTxt = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n"
)

type entry struct {
	name string
	text string
	mode fs.FileMode
}

// goodEntries returns the members of a correct wheel, RECORD last.
func goodEntries() []entry {
	return withRecord([]entry{
		{"horovod/__init__.py", "__version__ = '0.28.1'\n", 0o644},
		{"horovod/tensorflow/mpi_lib.so", "\x7fELF code", 0o755},
		{"horovod-0.28.1+rocm5.7.data/scripts/horovodrun", "#!python\n", 0o755},
		{info + "METADATA", metadata, 0o644},
		{info + "WHEEL", wheelTxt, 0o644},
		{info + "entry, points.txt", "", 0o644}, // a comma, which RECORD must quote
	})
}

// filesOf converts entries to the type of wheeltest.
func filesOf(entries []entry) []wheeltest.File {
	var files []wheeltest.File
	for _, e := range entries {
		files = append(files, wheeltest.File{Name: e.name, Text: e.text, Mode: e.mode})
	}
	return files
}

func withRecord(entries []entry) []entry {
	return append(entries, entry{info + "RECORD", wheeltest.Record(info+"RECORD", filesOf(entries)...).Text, 0o644})
}

// zipOf writes entries unchanged, with the given modification time.
func zipOf(t testing.TB, modified time.Time, entries ...entry) []byte {
	t.Helper()
	return wheeltest.ZIP(modified, filesOf(entries)...)
}

func openBytes(t testing.TB, name string, data []byte) *Wheel {
	t.Helper()
	path := must.File(t, name, data)
	w := must.Get(Open(path))(t)
	t.Cleanup(func() { w.Close() })
	return w
}

func openEntries(t testing.TB, entries ...entry) *Wheel {
	t.Helper()
	return openBytes(t, goodName, zipOf(t, time.Unix(1700000000, 0), entries...))
}
