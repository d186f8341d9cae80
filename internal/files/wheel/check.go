package wheel

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Check returns the problems of the wheel, each as a sentence that names the file. It
// reads every member once.
func (w *Wheel) Check() []string {
	return slices.Concat(
		slices.Clone(w.problems),
		w.checkDistInfo(),
		w.checkPlaces(),
		w.checkMetadata(),
		w.checkWheelInfo(),
		w.checkRecord(),
	)
}

// pathFault returns the reason why a name must not be unpacked, or "" for a safe name.
func pathFault(name string) string {
	parts := strings.Split(name, "/")
	switch {
	case strings.HasPrefix(name, "/"):
		return "is an absolute path"
	case strings.Contains(name, `\`):
		return "has a backslash in its path"
	case len(name) > 1 && name[1] == ':':
		return "begins with a drive letter"
	case slices.Contains(parts, ".."):
		return "leaves the wheel by .. in its path"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "has a control character in its path"
	case !fs.ValidPath(name) || name == ".":
		return "is not a plain path"
	case len(name) > maxPath || slices.ContainsFunc(parts, func(part string) bool { return len(part) > maxPart }):
		return fmt.Sprintf("has a name of more than %d bytes, or a path of more than %d, too long for file systems", maxPart, maxPath)
	}
	return ""
}

// ofInstallers lists the files in which installers note whence and for whom they
// installed a wheel (PEP 376, PEP 610). pip freeze prints the address in the first one in
// the place of the version, and what it prints is installed elsewhere.
var ofInstallers = []string{"direct_url.json", "INSTALLER", "REQUESTED"}

// checkDistInfo compares the name of the .dist-info directory, which installers trust,
// with the file name.
func (w *Wheel) checkDistInfo() (problems []string) {
	switch len(w.infoDirs) {
	case 0:
		return []string{"the wheel has no .dist-info directory"}
	case 1:
	default:
		problems = append(problems, fmt.Sprintf("the wheel has %d .dist-info directories: %s", len(w.infoDirs), strings.Join(w.infoDirs, ", ")))
	}
	if w.DistInfo == "" {
		return problems
	}
	name, version, _ := strings.Cut(strings.TrimSuffix(w.DistInfo, ".dist-info"), "-")
	if !w.isNamed(name) || !w.Name.HasVersion(version) {
		problems = append(problems, fmt.Sprintf("%q does not match the file name %s", w.DistInfo, w.Name))
	}
	for _, name := range ofInstallers {
		if w.members[w.DistInfo+"/"+name] != nil {
			problems = append(problems, fmt.Sprintf("the wheel has %q, which only installers write: pip names its content as the origin of the package", w.DistInfo+"/"+name))
		}
	}
	return problems
}

func (w *Wheel) isNamed(name string) bool { return NormalName(name) == NormalName(w.Name.Distribution) }

func (w *Wheel) checkMetadata() (problems []string) {
	if len(w.Metadata) == 0 {
		return nil // Open recorded the reason
	}
	file := w.DistInfo + "/METADATA"
	problems = append(problems, missing(file, w.Metadata, "Metadata-Version", "Name", "Version")...)
	if name := w.Metadata.Get("Name"); name != "" && !w.isNamed(name) {
		problems = append(problems, fmt.Sprintf("%s has Name %q, the file name has %q", file, name, w.Name.Distribution))
	}
	if version := w.Metadata.Get("Version"); version != "" && !w.Name.HasVersion(version) {
		problems = append(problems, fmt.Sprintf("%s has Version %q, the file name has %q", file, version, w.Name.Version))
	}
	for _, requirement := range w.Metadata.Values("Requires-Dist") {
		if named, _, _ := strings.Cut(requirement, ";"); strings.Contains(named, "@") {
			problems = append(problems, fmt.Sprintf("%s requires %.200q: installers fetch it from that address, and from no index", file, requirement))
		}
	}
	return problems
}

// missing reports fields that are absent, empty or repeated.
func missing(file string, h Header, keys ...string) (problems []string) {
	for _, key := range keys {
		if values := h.Values(key); len(values) != 1 || values[0] == "" {
			problems = append(problems, fmt.Sprintf("%s has %d fields %s, want 1 with a value", file, len(values), key))
		}
	}
	return problems
}

func (w *Wheel) checkWheelInfo() (problems []string) {
	if len(w.WheelInfo) == 0 {
		return nil
	}
	file := w.DistInfo + "/WHEEL"
	problems = append(problems, missing(file, w.WheelInfo, "Wheel-Version")...)
	if version := w.WheelInfo.Get("Wheel-Version"); version != "" && !strings.HasPrefix(version, "1.") {
		problems = append(problems, fmt.Sprintf("%s has Wheel-Version %q, and installers support 1.x", file, version))
	}
	if build := w.WheelInfo.Get("Build"); build != w.Name.Build {
		problems = append(problems, fmt.Sprintf("%s has Build %q, the file name has %q", file, build, w.Name.Build))
	}
	var tags []string
	for _, tag := range w.WheelInfo.Values("Tag") {
		expanded, ok := expandTag(tag)
		if !ok || len(tags) > maxTags {
			return append(problems, fmt.Sprintf("%s has Tag %.200q, which is not a tag", file, tag))
		}
		tags = append(tags, expanded...)
	}
	if tags = sortedSet(tags); !slices.Equal(tags, w.Name.Tags()) {
		problems = append(problems, fmt.Sprintf("%s has tags %.500q, the file name has %.500q", file, tags, w.Name.Tags()))
	}
	return problems
}

// checkRecord compares RECORD with the members in both directions.
func (w *Wheel) checkRecord() (problems []string) {
	if w.DistInfo == "" {
		return nil
	}
	name := w.DistInfo + "/RECORD"
	data, err := w.ReadFile(name, maxRecord)
	if err != nil {
		return []string{err.Error()}
	}
	lines, problems := parseRecord(name, data)
	for _, f := range w.zip.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		line, listed := lines[f.Name]
		if problem := w.checkMember(f, line, listed); problem != "" {
			problems = append(problems, problem)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(lines)) {
		if w.members[path] == nil {
			problems = append(problems, fmt.Sprintf("%s names %.300q, which is not in the wheel", name, path))
		}
	}
	return problems
}

// checkMember reads a member and compares it with its line of RECORD.
func (w *Wheel) checkMember(f *zip.File, line recordLine, listed bool) string {
	got, err := measure(io.Discard, f)
	switch {
	case err != nil:
		return err.Error()
	case unhashed(f.Name, w.DistInfo):
		return ""
	case !listed:
		return fmt.Sprintf("%q is not in RECORD", f.Name)
	case line.hash == "":
		return fmt.Sprintf("%q has no hash in RECORD", f.Name)
	case !strings.HasPrefix(line.hash, "sha256="):
		return fmt.Sprintf("%q has hash %.100q in RECORD, which is not a sha256", f.Name, line.hash)
	case line.hash != got.hash:
		return fmt.Sprintf("%q has hash %.100q in RECORD, but is %s", f.Name, line.hash, got.hash)
	case line.size != got.size:
		return fmt.Sprintf("%q has %s bytes in RECORD, but %s in the wheel", f.Name, cmp.Or(line.size, "no"), got.size)
	}
	return ""
}

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
