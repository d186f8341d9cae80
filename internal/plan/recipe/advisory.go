package recipe

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

// KnownAdvisories lists the advisories of the recipe and of all variants.
func (r *Recipe) KnownAdvisories() []Advisory {
	return each(r, func(s Settings) []Advisory { return s.Advisories })
}
