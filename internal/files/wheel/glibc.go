package wheel

import "regexp"

// manylinux matches platform tags with a glibc version (PEP 600). legacy maps the three
// older names to their versions (PEP 513, 571 and 599).
var (
	manylinux = regexp.MustCompile(`^(manylinux1|manylinux2010|manylinux2014|manylinux_(\d{1,3})_(\d{1,3}))_([a-z]\w*)$`)
	legacy    = map[string]string{"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
)

// Glibc returns the machine of a platform tag, and the oldest glibc it supports, such
// as 2.28. Both are "" for a tag without a glibc version, such as linux_x86_64.
func Glibc(platform string) (glibc, machine string) {
	m := manylinux.FindStringSubmatch(platform)
	switch {
	case m == nil:
		return "", ""
	case m[2] == "":
		return legacy[m[1]], m[4]
	}
	return m[2] + "." + m[3], m[4]
}
