package plan

import (
	"testing"

	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
)

// A stack loads where all its parts and wheels load.
func TestGlibcOfAStack(t *testing.T) {
	part := func(glibc string) (e lock.Entry) {
		e.Expect.Glibc = glibc
		return e
	}
	file := func(name string) pypi.File { return pypi.File{Filename: name} }
	const torch = "torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl"
	for name, c := range map[string]struct {
		parts  []lock.Entry
		wheels []pypi.File
		want   string
	}{
		"the part is newest":        {[]lock.Entry{part("2.31")}, []pypi.File{file(torch)}, "2.31"},
		"a wheel is newest":         {[]lock.Entry{part("2.17")}, []pypi.File{file(torch), file("six-1.17.0-py2.py3-none-any.whl")}, "2.28"},
		"the oldest of two tags":    {[]lock.Entry{part("2.17")}, []pypi.File{file("numpy-2.4.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl")}, "2.27"},
		"a tag by its old name":     {nil, []pypi.File{file("a-1-cp311-cp311-manylinux2014_x86_64.whl")}, "2.17"},
		"a part without a promise":  {[]lock.Entry{part("2.31"), part("")}, []pypi.File{file(torch)}, ""},
		"a file that is no wheel":   {[]lock.Entry{part("2.31")}, []pypi.File{file("a-1.tar.gz")}, ""},
		"neither glibc nor a wheel": {nil, nil, ""},
	} {
		check.Same(t, name, c.want, glibcOf(c.parts, c.wheels))
	}
}
