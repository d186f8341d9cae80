package gate

import (
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/version"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func parse(t *testing.T, text string) version.Version {
	t.Helper()
	v, err := version.Parse(text)
	must.Succeed(t, err)
	return v
}

const exportTable = `# a comment

release 2.17.1
release 2.30.3
release 2.30.7
ncclSend 2.17.1
ncclParamFlag 2.30.3 2.30.3
pncclSignal 2.30.7
`

func TestExports(t *testing.T) {
	all, releases, err := exports(exportTable)
	must.Hold(t, err == nil && len(all) == 3 && len(releases) == 3, "%v, %v, %v", all, releases, err)
	for _, c := range []struct {
		release string
		want    string
	}{
		{"2.17.1", "ncclSend"}, {"2.30.3", "ncclSend ncclParamFlag"}, {"2.30.4", "ncclSend"}, {"2.30.7", "ncclSend pncclSignal"}, {"2.16.2", ""},
	} {
		var names []string
		for _, e := range all {
			if e.in(parse(t, c.release)) {
				names = append(names, e.name)
			}
		}
		check.Same(t, c.release, c.want, strings.Join(names, " "))
	}
}

func TestNearest(t *testing.T) {
	_, releases, err := exports(exportTable)
	must.Succeed(t, err)
	for text, want := range map[string]string{
		"2.17.1": "2.17.1", "2.29.7": "2.17.1", "2.30.3": "2.30.3", "2.30.4": "2.30.3", "2.30.7": "2.30.7", "2.31.1": "2.30.7", "2.16.5": "",
	} {
		got, ok := nearest(releases, parse(t, text))
		check.That(t, ok == (want != "") && (!ok || got.String() == want), "%s: %v, %v; want %s", text, got, ok, want)
	}
}

func TestExportsRefuses(t *testing.T) {
	for table, says := range map[string]string{
		"ncclSend": "is not a name with one or two", "ncclSend 1 2 3": "is not a name with one or two", "ncclSend x": `"ncclSend x"`,
		"release 2.30.3\nncclSend 2.30.3 y": `"ncclSend 2.30.3 y"`,
	} {
		_, _, err := exports(table)
		check.Fails(t, err, says, table)
	}
}

// The built-in table is complete: sorted releases, each with functions.
func TestTheTableOfTheVendor(t *testing.T) {
	all, releases, err := exports(ncclExports)
	must.Succeed(t, err)
	for i, r := range releases {
		if i > 0 && version.Compare(releases[i-1], r) >= 0 {
			t.Errorf("%v stands before %v", releases[i-1], r)
		}
		count := 0
		for _, e := range all {
			if e.in(r) {
				count++
			}
		}
		check.That(t, count >= 50, "%v has %d functions", r, count)
	}
}

func TestJudgeExports(t *testing.T) {
	all, _, err := exports(exportTable)
	must.Succeed(t, err)
	have := map[string]bool{"ncclSend": true, "other": true}
	for release, c := range map[string]struct {
		want verdict.Status
		says string
	}{
		"2.17.1": {verdict.Pass, "exports all 1 functions of the vendor's 2.17.1"},
		"2.30.3": {verdict.Fail, "1 of the 2 functions of the vendor's 2.30.3 are missing: ncclParamFlag"},
		"2.16.2": {verdict.NotMeasured, "the table has no function of 2.16.2"},
	} {
		a := judgeExports(all, parse(t, release), have)
		check.That(t, a.Status == c.want && a.Evidence == c.says, "%s: %v %s", release, a.Status, a.Evidence)
	}
}
