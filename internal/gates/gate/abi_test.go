package gate

import (
	"strings"
	"testing"

	"builder/internal/plan/version"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func parse(t *testing.T, text string) version.Version {
	t.Helper()
	return must.Get(version.Parse(text))(t)
}

const exportTable = `# a comment

release 2.17.1
release 2.30.3
release 2.30.7
ncclSend 2.17.1
ncclParamFlag 2.30.3 2.30.3
pncclSignal 2.30.7
`

// A release that the table lacks is judged as the one before it.
func TestExports(t *testing.T) {
	for text, want := range map[string]string{
		"2.17.1": "2.17.1 ncclSend", "2.29.7": "2.17.1 ncclSend", "2.30.3": "2.30.3 ncclSend ncclParamFlag", "2.30.4": "2.30.3 ncclSend ncclParamFlag",
		"2.30.7": "2.30.7 ncclSend pncclSignal", "2.31.1": "2.30.7 ncclSend pncclSignal", "2.16.5": "",
	} {
		release, names, err := exports(exportTable, parse(t, text))
		must.Succeed(t, err)
		check.Same(t, text, want, strings.TrimSpace(release.String()+" "+strings.Join(names, " ")))
	}
	for _, table := range []string{"ncclSend x", "release 2.30.3\nncclSend 2.30.3 y"} {
		_, _, err := exports(table, parse(t, "2.30.3"))
		check.Fails(t, err, "reading the table of functions", table)
	}
}

// The built-in tables have sorted releases, each with functions.
func TestTheTablesOfTheVendors(t *testing.T) {
	for _, table := range []string{ncclExports, rcclExports} {
		var before version.Version
		for line := range strings.Lines(table) {
			text, found := strings.CutPrefix(line, "release ")
			if !found {
				continue
			}
			release := parse(t, strings.TrimSpace(text))
			check.That(t, before.String() == "" || version.Compare(before, release) < 0, "%v stands before %v", before, release)
			is, names, err := exports(table, release)
			check.That(t, err == nil && version.Compare(is, release) == 0 && len(names) >= 25, "%v has %d functions, %v", release, len(names), err)
			before = release
		}
	}
}
