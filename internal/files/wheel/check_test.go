package wheel

import (
	"bytes"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/test/kit/check"
)

// edit returns the good entries with one of them changed. RECORD keeps the old line;
// use rerecorded for a new one.
func edit(name string, change func(*entry)) []entry {
	entries := goodEntries()
	i := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
	change(&entries[i])
	return entries
}

func rerecorded(name, text string) []entry {
	entries := edit(name, func(e *entry) { e.text = text })
	return withRecord(entries[:len(entries)-1])
}

func without(name string) []entry {
	return slices.DeleteFunc(goodEntries(), func(e entry) bool { return e.name == name })
}

func added(name string, mode fs.FileMode) []entry {
	entries := goodEntries()
	return withRecord(append(entries[:len(entries)-1], entry{name, "x", mode}))
}

func TestCheck(t *testing.T) {
	const code = "horovod/tensorflow/mpi_lib.so"
	record := goodEntries()[6].text
	hash := regexp.MustCompile(`mpi_lib.so,(sha256=[^,]*),9`)
	letters := strings.Join(strings.Split("abcdefghijklmnop", ""), ".")
	atBound := letters + "-" + letters + "-" + letters // 16³ tags
	directory := entry{"horovod/", "", 0o755 | fs.ModeDir}
	recordAs := func(text string) []entry { return edit(info+"RECORD", func(e *entry) { e.text = text }) }
	for _, test := range []struct {
		name    string
		entries []entry
		want    []string // part of the sentence of each problem
	}{
		{"good", goodEntries(), nil},
		{"no size", recordAs(hash.ReplaceAllString(record, "mpi_lib.so,$1,")), []string{`mpi_lib.so" has no bytes in RECORD, but 9`}},
		{"signed", append(goodEntries(), entry{info + "RECORD.jws", "x", 0o644}, entry{info + "RECORD.p7s", "x", 0o644}), nil},
		{"no signature", append(goodEntries(), entry{info + "RECORD.txt", "x", 0o644}, entry{".jws", "x", 0o644}), []string{`RECORD.txt" is not`, `".jws" is not`}},
		{"behind a directory", append([]entry{directory}, append(goodEntries(), entry{"a.py", "", 0o644})...), []string{`"a.py" is not in RECORD`}},
		{"RECORD names twice", recordAs(record + info + "RECORD,,\n"), []string{"RECORD\" twice"}},
		{"RECORD is no table", recordAs(record + "\"a\n"), []string{"is unreadable"}},
		{"RECORD has two columns", recordAs(record + "a,b\n"), []string{"line 8 has 2 fields"}},
		{"a name of one letter", added("x", 0o644), nil},
		{"no dist-info", []entry{{"a", "b", 0o644}}, []string{"no .dist-info"}},
		{"METADATA name", rerecorded(info+"METADATA", strings.Replace(metadata, "horovod", "hvd", 1)), []string{`has Name "hvd"`}},
		{"METADATA in other spelling", rerecorded(info+"METADATA", "Metadata-Version: 2.1\nName: HOROVOD\nVersion: 0.28.1+rocm5-7\n"), nil},
		{"METADATA lacks all", rerecorded(info+"METADATA", "Author: x\n"), []string{"Metadata-Version", "fields Name", "fields Version"}},
		{"METADATA is empty", rerecorded(info+"METADATA", ""), []string{"it has no fields"}},
		{"METADATA is no header", rerecorded(info+"METADATA", "<html>"), []string{"line 1 is not a field"}},
		{"METADATA with a line that Python alone sees", rerecorded(info+"METADATA", strings.Replace(metadata, "\nLicense", "\rRequires-Dist: evil @ https://example.org/x\nLicense", 1)), []string{"line 3 has a carriage return"}},
		{"WHEEL tag is invalid", rerecorded(info+"WHEEL", wheelTxt+"Tag: x\n"), []string{`"x", which is not a tag`}},
		{"WHEEL tag is a bomb", rerecorded(info+"WHEEL", wheelTxt+"Tag: "+strings.Repeat("a.", 99)+"-"+strings.Repeat("b.", 99)+"-c\n"), []string{"which is not a tag"}},
		{"WHEEL tags at the bound", rerecorded(info+"WHEEL", "Wheel-Version: 1.0\nTag: "+atBound+"\nTag: x-y-z\n"), []string{"has tags"}},
		{"WHEEL tags beyond the bound", rerecorded(info+"WHEEL", "Wheel-Version: 1.0\nTag: "+atBound+"\nTag: x-y-z\nTag: x-y-z\n"), []string{`"x-y-z", which is not a tag`}},
		{"WHEEL lacks its version", rerecorded(info+"WHEEL", "Tag: cp311-cp311-linux_x86_64\n"), []string{"fields Wheel-Version"}},
		{"WHEEL version", rerecorded(info+"WHEEL", strings.Replace(wheelTxt, "1.0", "2.0", 1)), []string{`"2.0", and installers support`}},
		{"WHEEL build", rerecorded(info+"WHEEL", wheelTxt+"Build: 3\n"), []string{`has Build "3"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := openEntries(t, test.entries...).Check()
			ok := len(got) == len(test.want)
			for i := range test.want {
				ok = ok && strings.Contains(got[i], test.want[i])
			}
			check.That(t, ok, "faults (-want +got):\n%s", cmp.Diff(test.want, got))
		})
	}
}

// The distribution and the version in the wheel must match the file name.
func TestCheckComparesWithTheFileName(t *testing.T) {
	const tags = "-cp311-cp311-linux_x86_64.whl"
	for name, says := range map[string]string{"hvd-0.28.1+rocm5.7": `Name "horovod"`, "horovod-0.28.1+rocm6.1": `Version "0.28.1+rocm5.7"`} {
		got := openBytes(t, name+tags, zipOf(t, epoch, goodEntries()...)).Check()
		check.That(t, len(got) == 2 && strings.Contains(got[0], `dist-info" does not match the file name`) &&
			strings.Contains(got[1], says), "%s: %q", name, got)
	}
	// With two directories, Check compares neither.
	got := openBytes(t, "hvd-0.28.1"+tags, zipOf(t, epoch, added("other-1.dist-info/x", 0o644)...)).Check()
	check.That(t, len(got) == 1 && strings.Contains(got[0], "2 .dist-info directories"), "%q", got)
}

// Both the lines of RECORD and the problems reported for them are limited.
func TestRecordIsBounded(t *testing.T) {
	_, problems := parseRecord("RECORD", bytes.Repeat([]byte("a,,\n"), 3*maxMembers))
	n := len(problems)
	check.That(t, n == 2*maxMembers+1 && strings.Contains(problems[n-1], "more lines than"), "%d faults", n)
}

func TestCheckTellsAllFaults(t *testing.T) {
	entries := goodEntries()
	entries[0].text += "x"
	entries[1].name = "lib.so"
	got := openEntries(t, append(entries, entry{"extra", "", 0o644})...).Check()
	if len(got) != 4 { // content, two not in RECORD, one not in the wheel
		t.Errorf("%d faults, want 4: %q", len(got), got)
	}
}
