package deb

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/diag"
)

// Mirror returns the mirror used to resolve names.
func Mirror(mirrors []string) (string, error) {
	if len(mirrors) == 0 {
		return "", diag.Errorf(diag.Fetch, "no Debian mirror: the host's apt configuration has none").
			WithHint("set BUILDER_MIRROR_DEBIAN to the address of a mirror")
	}
	return mirrors[0], nil
}

// HostMirrors returns the base addresses of the Debian archives in the apt
// configuration below root, in the order of the configuration. It leaves out Ubuntu,
// security and third-party archives.
func HostMirrors(root fs.FS) []string {
	files := []string{"etc/apt/sources.list"}
	for _, pattern := range []string{"etc/apt/sources.list.d/*.list", "etc/apt/sources.list.d/*.sources"} {
		found, _ := fs.Glob(root, pattern) // the patterns are well formed
		files = append(files, found...)
	}
	var mirrors []string
	for _, file := range files {
		data, err := fs.ReadFile(root, file)
		if err != nil {
			continue // the file is optional
		}
		parse := parseOneLine
		if strings.HasSuffix(file, ".sources") {
			parse = parseDeb822
		}
		for _, e := range parse(string(data)) {
			if e.isDebian() && !slices.Contains(mirrors, e.uri) {
				mirrors = append(mirrors, e.uri)
			}
		}
	}
	return mirrors
}

// entry is one archive of an apt configuration.
type entry struct {
	uri    string // without a final slash
	suites []string
}

var suites = []string{
	"bullseye", "bookworm", "trixie", "forky", "duke", "sid",
	"oldoldstable", "oldstable", "stable", "testing", "unstable",
}

// isDebian reports whether an entry is a Debian archive with a pool.
func (e entry) isDebian() bool {
	web := strings.HasPrefix(e.uri, "http://") || strings.HasPrefix(e.uri, "https://") || strings.HasPrefix(e.uri, "file:")
	return web && strings.HasSuffix(e.uri, "/debian") && slices.ContainsFunc(e.suites, func(suite string) bool {
		name, _, _ := strings.Cut(suite, "-")
		return slices.Contains(suites, name)
	})
}

// parseOneLine reads sources.list(5): deb [options] uri suite components.
func parseOneLine(text string) []entry {
	var entries []entry
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if i, j := strings.IndexByte(line, '['), strings.IndexByte(line, ']'); i >= 0 && j > i {
			line = line[:i] + line[j+1:]
		}
		if f := strings.Fields(line); len(f) >= 3 && f[0] == "deb" {
			entries = append(entries, entry{strings.TrimSuffix(f[1], "/"), f[2:3]})
		}
	}
	return entries
}

var blankLine = regexp.MustCompile(`\n[ \t\r]*\n`)

// off lists the words that mean "no" to apt.
var off = []string{"no", "false", "without", "off", "disable", "0"}

// parseDeb822 reads the stanzas of a .sources file.
func parseDeb822(text string) []entry {
	var entries []entry
	for _, stanza := range blankLine.Split(text, -1) {
		fields := stanzaFields(stanza)
		if !slices.Contains(strings.Fields(fields["types"]), "deb") || slices.Contains(off, strings.ToLower(fields["enabled"])) {
			continue
		}
		for uri := range strings.FieldsSeq(fields["uris"]) {
			entries = append(entries, entry{strings.TrimSuffix(uri, "/"), strings.Fields(fields["suites"])})
		}
	}
	return entries
}

func stanzaFields(stanza string) map[string]string {
	fields := map[string]string{}
	last := ""
	for line := range strings.Lines(stanza) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			fields[last] += " " + strings.TrimSpace(line)
			continue
		}
		if name, value, ok := strings.Cut(line, ":"); ok {
			last = strings.ToLower(strings.TrimSpace(name))
			fields[last] = strings.TrimSpace(value)
		}
	}
	return fields
}
