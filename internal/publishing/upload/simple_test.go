package upload

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const sum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func TestPages(t *testing.T) {
	const name = "a-1+b-py3-none-any.whl"
	for title, c := range map[string]struct {
		kind, page string
		sum        string // "" if not there
		says       string // text of the error
	}{
		"html":              {"text/html; charset=utf-8", `<html><body><a href="../../f/a-1%2Bb-py3-none-any.whl#sha256=` + sum + `">x</a>`, sum, ""},
		"not encoded":       {"text/html", `<a href='a-1+b-py3-none-any.whl#sha256=` + strings.ToUpper(sum) + `'/>`, sum, ""},
		"token":             {htmlPage, `<A data-x HREF="https://h/a-1+b-py3-none-any.whl?token=x#egg=a&amp;sha256=` + sum + `">`, sum, ""},
		"in a comment":      {"text/html", `<!-- <a href="a-1+b-py3-none-any.whl#sha256=` + sum + `"> -->`, "", ""},
		"in a script":       {"text/html", `<script>"<a href='a-1+b-py3-none-any.whl#sha256=` + sum + `'>"</script>`, "", ""},
		"another":           {"text/html", `<a href="a-1+b-py2-none-any.whl#sha256=` + sum + `">`, "", ""},
		"folder":            {"text/html", `<a href="a-1+b-py3-none-any.whl/#sha256=` + sum + `">`, "", ""},
		"md5":               {"text/html", `<a href="a-1+b-py3-none-any.whl#md5=abc">`, "", "without its sha256"},
		"no hash":           {"text/html", `<a href="a-1+b-py3-none-any.whl#sha256=abc">`, "", "without its sha256"},
		"twice":             {"text/html", strings.Repeat(`<a href="a-1+b-py3-none-any.whl#sha256=`+sum+`">`, 2), sum, ""},
		"two":               {"text/html", `<a href="a-1+b-py3-none-any.whl#sha256=` + sum + `"><a href="a-1+b-py3-none-any.whl#sha256=` + strings.Repeat("0", 64) + `">`, "", "different digests"},
		"version 1":         {"text/html", `<meta name="pypi:repository-version" content="1.3">`, "", ""},
		"version 2":         {"text/html", `<meta name="pypi:repository-version" content="2.0">`, "", "version \"2.0\""},
		"huge tag":          {"text/html", `<a href="` + strings.Repeat("x", 2<<20), "", "max buffer"},
		"json":              {jsonPage, `{"meta":{"api-version":"1.4"},"files":[{"filename":"a-1+b-py3-none-any.whl","hashes":{"sha256":"` + sum + `"}}]}`, sum, ""},
		"json without hash": {jsonPage, `{"meta":{"api-version":"1.0"},"files":[{"filename":"a-1+b-py3-none-any.whl","hashes":{}}]}`, "", "without its sha256"},
		"json version 2":    {jsonPage, `{"meta":{"api-version":"2.0"}}`, "", "version \"2.0\""},
		"json of others":    {"application/json", `{"error":"log in"}`, "", "version \"\""},
		"cut json":          {jsonPage, `{"meta":{"api-version":"1.0"},"files":[{`, "", "no readable index"},
		"no page":           {"application/zip", "PK", "", "content type"},
		"nothing":           {"", "", "", "content type"},
	} {
		files, err := parse(c.kind, strings.NewReader(c.page))
		got, found := "", false
		if err == nil {
			got, found, err = find(files, name)
		}
		if c.says == "" && (err != nil || got != c.sum || found != (c.sum != "")) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %q, %v, %v", title, got, found, err)
		}
	}
}

// A truncated page does not prove that the file is missing.
func TestACutPage(t *testing.T) {
	for _, kind := range []string{"text/html", jsonPage} {
		page := io.MultiReader(strings.NewReader(`<a href="x">`), iotest.ErrReader(io.ErrUnexpectedEOF))
		if _, err := parse(kind, page); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func FuzzPage(f *testing.F) {
	f.Add(true, `<!DOCTYPE html><meta name="pypi:repository-version" content="1.0"><a href="../a.whl#sha256=`+sum+`" data-yanked="">a.whl</a>`)
	f.Add(false, `{"meta":{"api-version":"1.1"},"name":"a","files":[{"filename":"a.whl","url":"a.whl","hashes":{"sha256":"`+sum+`"}}]}`)
	f.Fuzz(func(t *testing.T, isJSON bool, page string) {
		kind := "text/html"
		if isJSON {
			kind = jsonPage
		}
		files, err := parse(kind, strings.NewReader(page))
		if err != nil && files != nil {
			t.Error("files of a page that could not be read")
		}
		for _, file := range files {
			if file.sha256 != "" && (len(file.sha256) != 64 || file.sha256 != strings.ToLower(file.sha256)) {
				t.Errorf("%q is no digest", file.sha256)
			}
			got, found, err := find(files, file.name)
			if !found || err == nil && got == "" {
				t.Errorf("%q is listed and not found: %q, %v", file.name, got, err)
			}
		}
	})
}

func FuzzNetrc(f *testing.F) {
	f.Add("machine h login a password b\nmacdef x\n y\n\ndefault login c password d\n# no\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range parseNetrc(text) {
			if !strings.Contains(text, m.host) || !strings.Contains(text, m.password) {
				t.Errorf("%+v is not there", m)
			}
		}
	})
}
