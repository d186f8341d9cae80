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
		w.problems,
		checkDistInfo(w.infoDirs, w.DistInfo, w.Name),
		checkOrigin(w.contents, w.DistInfo),
		checkPlaces(w.contents, w.Files, w.DistInfo),
		checkMetadata(w.DistInfo+"/METADATA", w.Metadata, w.Name),
		checkWheelInfo(w.DistInfo+"/WHEEL", w.WheelInfo, w.Name),
		checkRecord(w.contents, w.Files, w.DistInfo),
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

// checkDistInfo compares the name of the .dist-info directory, which installers trust,
// with the file name.
func checkDistInfo(dirs []string, distInfo string, of Name) (problems []string) {
	switch len(dirs) {
	case 0:
		return []string{"the wheel has no .dist-info directory"}
	case 1:
	default:
		problems = append(problems, fmt.Sprintf("the wheel has %d .dist-info directories: %s", len(dirs), strings.Join(dirs, ", ")))
	}
	name, version, _ := strings.Cut(strings.TrimSuffix(distInfo, ".dist-info"), "-")
	if distInfo != "" && (!of.hasProject(name) || !of.HasVersion(version)) {
		problems = append(problems, fmt.Sprintf("%q does not match the file name %s", distInfo, of))
	}
	return problems
}

// ofInstallers lists the files in which installers note whence and for whom they
// installed a wheel (PEP 376, PEP 610). pip freeze prints the address in the first one in
// the place of the version, and what it prints is installed elsewhere.
var ofInstallers = []string{"direct_url.json", "INSTALLER", "REQUESTED"}

// checkOrigin refuses the files that only installers write.
func checkOrigin(in contents, distInfo string) (problems []string) {
	for _, name := range ofInstallers {
		if in[distInfo+"/"+name] != nil {
			problems = append(problems, fmt.Sprintf("the wheel has %q, which only installers write: pip names its content as the origin of the package", distInfo+"/"+name))
		}
	}
	return problems
}

func checkMetadata(file string, h Header, of Name) (problems []string) {
	if len(h) == 0 {
		return nil // Open recorded the reason
	}
	problems = append(problems, missing(file, h, "Metadata-Version", "Name", "Version")...)
	if name := h.Get("Name"); name != "" && !of.hasProject(name) {
		problems = append(problems, fmt.Sprintf("%s has Name %q, the file name has %q", file, name, of.Distribution))
	}
	if version := h.Get("Version"); version != "" && !of.HasVersion(version) {
		problems = append(problems, fmt.Sprintf("%s has Version %q, the file name has %q", file, version, of.Version))
	}
	for _, requirement := range h.Values("Requires-Dist") {
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

func checkWheelInfo(file string, h Header, of Name) (problems []string) {
	if len(h) == 0 {
		return nil
	}
	problems = append(problems, missing(file, h, "Wheel-Version")...)
	if version := h.Get("Wheel-Version"); version != "" && !strings.HasPrefix(version, "1.") {
		problems = append(problems, fmt.Sprintf("%s has Wheel-Version %q, and installers support 1.x", file, version))
	}
	if build := h.Get("Build"); build != of.Build {
		problems = append(problems, fmt.Sprintf("%s has Build %q, the file name has %q", file, build, of.Build))
	}
	var tags []string
	for _, tag := range h.Values("Tag") {
		expanded, ok := expandTag(tag)
		if !ok || len(tags) > maxTags {
			return append(problems, fmt.Sprintf("%s has Tag %.200q, which is not a tag", file, tag))
		}
		tags = append(tags, expanded...)
	}
	if tags = sortedSet(tags); !slices.Equal(tags, of.Tags()) {
		problems = append(problems, fmt.Sprintf("%s has tags %.500q, the file name has %.500q", file, tags, of.Tags()))
	}
	return problems
}

// checkRecord compares RECORD with the members in both directions.
func checkRecord(in contents, files []File, distInfo string) (problems []string) {
	if distInfo == "" {
		return nil
	}
	name := distInfo + "/RECORD"
	data, err := in.ReadFile(name, maxRecord)
	if err != nil {
		return []string{err.Error()}
	}
	lines, problems := parseRecord(name, data)
	for _, f := range files {
		if problem := checkMember(in[f.Name], lines, distInfo); problem != "" {
			problems = append(problems, problem)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(lines)) {
		if in[path] == nil {
			problems = append(problems, fmt.Sprintf("%s names %.300q, which is not in the wheel", name, path))
		}
	}
	return problems
}

// checkMember reads a member and compares it with its line of RECORD.
func checkMember(f *zip.File, lines map[string]recordLine, distInfo string) string {
	line, listed := lines[f.Name]
	h := sha256.New()
	var n counter
	err := copyMember(io.MultiWriter(h, &n), f)
	got := lineOf(f.Name, h.Sum(nil), int64(n))
	switch {
	case err != nil:
		return err.Error()
	case unhashed(f.Name, distInfo):
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
