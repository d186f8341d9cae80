package wheel

import "regexp"

// manylinux is the platform tag that names a glibc (PEP 600), and legacy the older
// names of three of them (PEP 513, 571 and 599).
var (
	manylinux = regexp.MustCompile(`^(manylinux1|manylinux2010|manylinux2014|manylinux_(\d{1,3})_(\d{1,3}))_([a-z]\w*)$`)
	legacy    = map[string]string{"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
)

// Glibc returns the oldest glibc that a platform tag promises to run with, such as
// 2.28, and its machine; both are "" for a tag that promises none, such as
// linux_x86_64.
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
