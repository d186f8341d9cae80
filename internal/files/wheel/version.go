package wheel

import (
	"regexp"
	"strings"
)

var (
	separators = regexp.MustCompile(`[-_.]+`)

	// The parts of a version according to PEP 440: epoch, release, pre, post (two
	// spellings), dev, local.
	pep440 = regexp.MustCompile(`^v?(?:([0-9]+)!)?([0-9]+(?:\.[0-9]+)*)` +
		`(?:[-_.]?(alpha|a|beta|b|preview|pre|rc|c)[-_.]?([0-9]*))?` +
		`(?:-([0-9]+)|[-_.]?(post|rev|r)[-_.]?([0-9]*))?` +
		`(?:[-_.]?(dev)[-_.]?([0-9]*))?` +
		`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)

	// A file name has an underscore in place of the dash in a short post release.
	underscorePost = regexp.MustCompile(`^([^+]*[0-9])_([0-9]+)(\+.*)?$`)

	preNames = map[string]string{"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
)

// NormalName normalizes a project name for comparison (PEP 503).
func NormalName(s string) string {
	return strings.ToLower(separators.ReplaceAllString(s, "-"))
}

// normalVersion normalizes a version for comparison (PEP 440), including the local
// part: builds with different local parts are different wheels. Texts outside PEP 440
// are compared in lower case.
func normalVersion(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	s = underscorePost.ReplaceAllString(s, "$1-$2$3")
	m := pep440.FindStringSubmatch(s)
	if m == nil {
		return s
	}
	var b strings.Builder
	if epoch := number(m[1]); epoch != "0" {
		b.WriteString(epoch + "!")
	}
	b.WriteString(release(m[2]))
	if pre := m[3]; pre != "" {
		if short, ok := preNames[pre]; ok {
			pre = short
		}
		b.WriteString(pre + number(m[4]))
	}
	if m[5] != "" || m[6] != "" {
		b.WriteString(".post" + number(m[5]+m[7]))
	}
	if m[8] != "" {
		b.WriteString(".dev" + number(m[9]))
	}
	if m[10] != "" {
		b.WriteString("+" + local(m[10]))
	}
	return b.String()
}

// number drops leading zeros. An empty number is 0.
func number(s string) string {
	if s = strings.TrimLeft(s, "0"); s == "" {
		return "0"
	}
	return s
}

// release drops the leading zeros of each number, and trailing zeros, which have no
// meaning in PEP 440.
func release(s string) string {
	parts := strings.Split(s, ".")
	for i := range parts {
		parts[i] = number(parts[i])
	}
	for len(parts) > 1 && parts[len(parts)-1] == "0" {
		parts = parts[:len(parts)-1]
	}
	return strings.Join(parts, ".")
}

func local(s string) string {
	parts := separators.Split(s, -1)
	for i, p := range parts {
		if strings.Trim(p, "0123456789") == "" {
			parts[i] = number(p)
		}
	}
	return strings.Join(parts, ".")
}
