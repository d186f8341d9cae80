package recipe

import (
	"fmt"
	"regexp"

	"builder/internal/base/diag"
)

// An Advisory is a published vulnerability of the source. A cell is affected unless it
// gets the patch that closes it.
type Advisory struct {
	ID       string `yaml:"id" json:"id" jsonschema:"description=name in the list of CVEs (CVE-2024-10190)"`
	About    string `yaml:"about" json:"about" jsonschema:"description=who can do what; one sentence"`
	Source   string `yaml:"source" json:"source" jsonschema:"format=uri,description=where it is published"`
	MendedBy string `yaml:"mended-by" json:"mended-by" jsonschema:"description=name of the patch of this recipe that closes it"`
	Remains  string `yaml:"remains,omitempty" json:"remains,omitempty" jsonschema:"description=what stays open where the patch is applied"`
	Action   string `yaml:"action" json:"action" jsonschema:"description=what the user of a build without the patch has to do"`
}

var cveID = regexp.MustCompile(`^CVE-[0-9]{4}-[0-9]{4,}$`)

// problem returns the first problem of an advisory as written, or "".
func (a Advisory) problem() string {
	switch {
	case !cveID.MatchString(a.ID):
		return fmt.Sprintf("id %q is not an id such as CVE-2024-10190", a.ID)
	case a.About == "" || a.Source == "" || a.MendedBy == "" || a.Action == "":
		return a.ID + " needs about, source, mended-by and action: users of the artifact read them"
	}
	return ""
}

// KnownAdvisories lists the advisories of the recipe and of all variants.
func (r *Recipe) KnownAdvisories() []Advisory {
	var all []Advisory
	for _, s := range r.settings() {
		all = append(all, s.Advisories...)
	}
	return all
}

// validateAdvisories requires every advisory to be complete and unique. With two for
// one vulnerability, it would be undefined which one holds.
func (r *Recipe) validateAdvisories() []error {
	var errs []error
	for _, s := range r.settings() {
		for j, a := range s.Advisories {
			problem := a.problem()
			if problem == "" && named(s.Advisories, j) {
				problem = a.ID + " occurs twice"
			}
			if problem != "" {
				errs = append(errs, diag.At(r.index.At("%sadvisories[%d]", s.at, j), "%s", problem))
			}
		}
	}
	return errs
}
