package repo_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/markdown"
	"builder/test/kit/must"
)

// below returns the files below a directory with one of the extensions.
func below(t *testing.T, dir string, ends ...string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && slices.Contains(ends, filepath.Ext(path)) {
			files = append(files, path)
		}
		return err
	})
	must.Hold(t, err == nil && len(files) != 0, "%d files %v below %s, %v", len(files), ends, dir, err)
	return files
}

func readPage(t *testing.T, path string) markdown.Page {
	t.Helper()
	return must.Get(markdown.Read(path))(t)
}

// onGitHub returns the anchor of a heading on GitHub. It differs from the site's if the
// heading has punctuation between spaces.
func onGitHub(heading string) string {
	return strings.ReplaceAll(strings.ToLower(regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(heading, "")), " ", "-")
}

// Every link within the repository has an existing file as target, and an anchor that
// is equal on the site and on GitHub. Pages of the site link only to files below docs,
// because the site has no others.
func TestLinksLeadSomewhere(t *testing.T) {
	atRoot(t)
	links := 0
	for _, file := range append(below(t, "docs", ".md"), "README.md", "CONTRIBUTING.md") {
		for _, link := range readPage(t, file).Links {
			if strings.Contains(link.Text, "://") {
				continue
			}
			links++
			to, anchor, _ := strings.Cut(link.Text, "#")
			target := path.Join(path.Dir(file), to)
			if to == "" {
				target = file
			}
			if _, err := os.Stat(target); err != nil || strings.HasPrefix(file, "docs/") && !strings.HasPrefix(target, "docs/") {
				t.Errorf("%s:%d: %s leads nowhere: %v", file, link.Line, link.Text, err)
			} else if anchor != "" && !hasHeading(t, target, anchor) {
				t.Errorf("%s:%d: %s: no heading has that name on the site and on GitHub", file, link.Line, link.Text)
			}
		}
	}
	check.That(t, links >= 80, "only %d links were found", links)
}

func hasHeading(t *testing.T, file, anchor string) bool {
	t.Helper()
	return slices.ContainsFunc(readPage(t, file).Headings, func(h markdown.Text) bool {
		return markdown.Anchor(h.Text) == anchor && onGitHub(h.Text) == anchor
	})
}

// inNav matches an entry of the navigation in mkdocs.yml.
var inNav = regexp.MustCompile(`(?m)^ +- [^:#]+(?:: [^:#]+")?: ([\w/-]+\.md)$`)

// Every page is in the navigation once, and the front page links to it.
func TestEveryPageIsFound(t *testing.T) {
	atRoot(t)
	config := must.Get(os.ReadFile("mkdocs.yml"))(t)
	var got, want []string
	for _, m := range inNav.FindAllStringSubmatch(string(config), -1) {
		got = append(got, m[1])
	}
	for _, file := range below(t, "docs", ".md") {
		want = append(want, strings.TrimPrefix(file, "docs/"))
	}
	slices.Sort(got)
	slices.Sort(want)
	check.That(t, slices.Equal(got, want), "mkdocs.yml leads to %v, the pages are %v", got, want)
	front := readPage(t, "docs/index.md").Links
	for _, name := range want {
		if strings.HasPrefix(name, "reference/") && name != "reference/README.md" {
			continue // linked from the first page of the reference
		}
		check.That(t, name == "index.md" || slices.ContainsFunc(front, func(l markdown.Text) bool { return l.Text == name }),
			"docs/index.md does not lead to %s", name)
	}
}

// loaded matches addresses that a browser fetches without a click: of elements other
// than links to follow, and of url and @import in style sheets.
var loaded = []*regexp.Regexp{
	regexp.MustCompile(`(?is)<(?:script|img|iframe|source|video|audio|embed|object|link)\b[^>]*?\b(?:src|srcset|href|data)\s*=\s*["']?\s*((?:https?:)?//[^"'\s>]+)`),
	regexp.MustCompile(`(?i)(?:url\(|@import)\s*["']?\s*((?:https?:)?//[^"')\s]+)`),
}

func TestLoaded(t *testing.T) {
	atRoot(t)
	for text, outside := range map[string]bool{
		`<a href="https://example.org/">`:                          false,
		`<script src="../assets/a.js"></script>`:                   false,
		`<script defer src=https://example.org/a.js>`:              true,
		`<link rel="stylesheet" href="//example.org/a.css">`:       true,
		`body { background: url("https://example.org/a.png") }`:    true,
		`@import 'https://example.org/a.css'`:                      true,
		`.a { background: url(data:image/svg+xml,http://www.w3) }`: false,
	} {
		check.Same(t, fmt.Sprintf("%s: %v", text, loads(text)), outside, len(loads(text)) > 0)
	}
}

func loads(text string) []string {
	var all []string
	for _, pattern := range loaded {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
	}
	return all
}

// The site built by make docs, in the directory BUILDER_TEST_SITE, loads nothing from
// another host.
func TestBuiltSiteLoadsNothing(t *testing.T) {
	atRoot(t)
	dir := os.Getenv("BUILDER_TEST_SITE")
	if dir == "" {
		t.Skip("make docs builds the site and looks at it")
	}
	files := below(t, dir, ".html", ".css")
	must.Hold(t, len(files) >= 20, "the site has only %d files", len(files))
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		for _, address := range loads(string(text)) {
			t.Errorf("%s loads %s", file, address)
		}
	}
}
