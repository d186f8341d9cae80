package diagnose_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"builder/internal/base/diag"
	"builder/internal/plan/diagnose"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

const good = `
topic: Tools
diagnoses:
  - name: disk-full
    severity: error
    signs: ['No space left']
    cause: the disk is full
    remedy: free some space
    source: https://example.com/1
    examples: {match: ['No space left on device'], miss: ['space left']}
`

func read(files ...string) ([]diagnose.Diagnosis, error) {
	fsys := fstest.MapFS{}
	for i, text := range files {
		fsys[string(rune('a'+i))+".yaml"] = &fstest.MapFile{Data: []byte(text)}
	}
	return diagnose.Load(fsys, "diagnoses")
}

func TestLoad(t *testing.T) {
	all, err := read(good, strings.ReplaceAll(good, "disk-full", "other"))
	must.Hold(t, err == nil && len(all) == 2 && all[0].Name == "disk-full" && all[1].Name == "other" && all[0].Topic == "Tools",
		"got %v, %v", all, err)
	check.Same(t, "the hint", "the disk is full; free some space (https://example.com/1)", all[0].Hint())
}

// Every error has its position, and none hides another.
func TestLoadReportsEveryFault(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown key":    {"    severity", "    sverity: x\n    severity", `a.yaml:5:5: unknown key "sverity"`},
		"no topic":       {"topic: Tools\n", "", "topic is missing"},
		"name":           {"name: disk-full", "name: Disk Full", `a.yaml:4:11: the name of a diagnosis must be a word such as shm-small, not "Disk Full"`},
		"severity":       {"severity: error", "severity: fatal", `a.yaml:5:15: diagnoses.severity: "fatal" is not error or warning or note`},
		"expression":     {"'No space left'", "'No space (left'", "a.yaml:6:13: disk-full: \"No space (left\" is not a regular expression"},
		"nothing fixed":  {"'No space left'", "'No|space'", `can match without a fixed text of at least 4 characters`},
		"anchored":       {"'No space left'", "'^No space left'", "matches only at the beginning of a line"},
		"nothing at all": {"signs: ['No space left']", "not: ['No space left']", "signs and all-of are missing"},
		"no cause":       {"cause: the disk is full", "cause: ' '", "a.yaml:7:12: diagnoses.cause is missing"},
		"full stop":      {"remedy: free some space", "remedy: Free some space.", "remedy must be one line without a full stop"},
		"source":         {"https://example.com/1", "my head", `a.yaml:9:13: disk-full: source must be`},
		"versions":       {"    source:", "    versions: {rocm: '>=>=6'}\n    source:", "a.yaml:9:22: disk-full: "},
		"two menders":    {"    source:", "    mended-by: {patch: a/b, axis: a/c}\n    source:", "mended-by must name one of patch, axis and option"},
		"no mender":      {"    source:", "    mended-by: {option: ''}\n    source:", "mended-by must name one of patch, axis and option"},
		"no miss":        {"miss: ['space left']", "miss: []", "examples.miss is empty: write at least one"},
		"no examples":    {"    examples: {match: ['No space left on device'], miss: ['space left']}\n", "", "diagnoses.examples is missing"},
		"no match":       {"match: ['No space left on device']", "match: ['No space']", `a.yaml:10:24: disk-full: the diagnosis does not find this example of a match`},
		"no miss at all": {"miss: ['space left']", "miss: [x, 'No space left']", `a.yaml:10:62: disk-full: the diagnosis finds this example of a miss`},
		"except":         {"    cause:", "    except: ['(']\n    cause:", `a.yaml:7:14: disk-full: "(" is not a regular expression`},
	} {
		broken := strings.Replace(good, c.old, c.new, 1)
		check.That(t, broken != good, "%s: nothing was changed", name)
		_, err := read(broken, "topic: 1")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
			continue
		}
		check.That(t, strings.Contains(err.Error(), "b.yaml:1:8: quote the version 1") && diag.CodeOf(err) == diag.Usage,
			"%s: hides the fault of the other file: %v", name, err)
	}
}

func TestNamesAreUnique(t *testing.T) {
	_, err := read(good, good)
	check.Fails(t, err, `b.yaml:4:11: diagnosis "disk-full" is already in diagnoses/a.yaml`)
}
