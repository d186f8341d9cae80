package wheel

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// recordLine is one line of RECORD: path, hash, size. The hash has the form sha256=…,
// in URL-safe base64 without padding.
type recordLine struct{ path, hash, size string }

// measure copies a member to dst and returns its line.
func measure(dst io.Writer, f *zip.File) (recordLine, error) {
	h := sha256.New()
	var n counter
	err := copyMember(io.MultiWriter(dst, h, &n), f)
	return lineOf(f.Name, h.Sum(nil), int64(n)), err
}

func lineOf(path string, sum []byte, size int64) recordLine {
	return recordLine{path, "sha256=" + base64.RawURLEncoding.EncodeToString(sum), strconv.FormatInt(size, 10)}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// unhashed reports whether RECORD lists a file without a hash: RECORD itself, and its
// signatures.
func unhashed(name, distInfo string) bool {
	rest, ok := strings.CutPrefix(name, distInfo+"/RECORD")
	return ok && (rest == "" || rest == ".jws" || rest == ".p7s")
}

// parseRecord returns the lines of RECORD by path, and their problems.
func parseRecord(name string, data []byte) (lines map[string]recordLine, problems []string) {
	r := csv.NewReader(bytes.NewReader(data))
	r.FieldsPerRecord = -1
	r.ReuseRecord = true
	lines = map[string]recordLine{}
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return lines, problems
		}
		if err != nil {
			return lines, append(problems, fmt.Sprintf("%s is unreadable: %v", name, err))
		}
		if len(fields) != 3 {
			number, _ := r.FieldPos(0)
			return lines, append(problems, fmt.Sprintf("%s line %d has %d fields, expected path, hash and size", name, number, len(fields)))
		}
		line := recordLine{fields[0], fields[1], fields[2]}
		if _, twice := lines[line.path]; twice {
			problems = append(problems, fmt.Sprintf("%s names %.300q twice", name, line.path))
		}
		lines[line.path] = line
		if len(lines)+len(problems) > 2*maxMembers {
			return lines, append(problems, fmt.Sprintf("%s has more lines than a wheel has files", name))
		}
	}
}

// formatRecord writes RECORD, with its own line last.
func formatRecord(lines []recordLine, self string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, l := range append(lines, recordLine{path: self}) {
		w.Write([]string{l.path, l.hash, l.size}) // writing to a buffer does not fail
	}
	w.Flush()
	return b.Bytes()
}
