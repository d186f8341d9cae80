package upload

import (
	"fmt"
	"strings"
	"testing"

	"builder/test/kit/check"
)

const sum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func TestPages(t *testing.T) {
	for title, c := range map[string]struct {
		page, sums string
	}{
		"a link":        {`<html><body><a href="../../f/demo_pkg-1.0%2Bcu130-py3-none-any.whl#sha256=` + sum + `">x</a>`, sum},
		"not encoded":   {`<a href='demo_pkg-1.0+cu130-py3-none-any.whl#sha256=` + strings.ToUpper(sum) + `'/>`, sum},
		"token":         {`<A data-x HREF="https://h/demo_pkg-1.0+cu130-py3-none-any.whl?token=x#egg=a&amp;sha256=` + sum + `">`, sum},
		"in a comment":  {`<!-- <a href="demo_pkg-1.0+cu130-py3-none-any.whl#sha256=` + sum + `"> -->`, ""},
		"in a script":   {`<script>"<a href='demo_pkg-1.0+cu130-py3-none-any.whl#sha256=` + sum + `'>"</script>`, ""},
		"another":       {`<a href="demo_pkg-1.0+cu131-py3-none-any.whl#sha256=` + sum + `">`, ""},
		"only its text": {`<a href="x.whl#sha256=` + sum + `">demo_pkg-1.0+cu130-py3-none-any.whl</a>`, ""},
		"folder":        {`<a href="demo_pkg-1.0+cu130-py3-none-any.whl/#sha256=` + sum + `">`, ""},
		"md5":           {`<a href="demo_pkg-1.0+cu130-py3-none-any.whl#md5=abc">`, "none"},
		"two":           {`<a href="demo_pkg-1.0+cu130-py3-none-any.whl#sha256=` + sum + `"><a href="demo_pkg-1.0+cu130-py3-none-any.whl#sha256=abc">`, sum + " abc"},
		"huge tag":      {`<a href="` + strings.Repeat("x", 2<<20), ""},
	} {
		check.Same(t, title, strings.ReplaceAll(c.sums, "none", ""), strings.Join(parse([]byte(c.page), demo), " "))
		check.Same(t, fmt.Sprintf("%s links", title), (c.sums != ""), len(parse([]byte(c.page), demo)) > 0)
	}
}
