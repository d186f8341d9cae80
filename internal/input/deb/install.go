package deb

import (
	_ "embed"
	"path"
	"slices"
	"strings"

	"builder/internal/base/shell"
)

//go:embed install.sh
var installScript string

// InstallScript returns the shell script that is run as root in the bootstrapped
// file system, without a network, with all packages of the list in dir under
// the names of their files. It installs exactly the list and fails otherwise.
func InstallScript(packages []Package, dir string) string {
	var bootstrap, all, want []string
	for _, p := range packages {
		file := shell.Quote(path.Join(dir, path.Base(p.Path)))
		all = append(all, file)
		if p.Bootstrap {
			bootstrap = append(bootstrap, file)
		}
		want = append(want, p.Name+" "+p.Version)
	}
	slices.Sort(want)
	return strings.NewReplacer(
		"@BOOTSTRAP@", strings.Join(bootstrap, " "),
		"@ALL@", strings.Join(all, " "),
		"@WANT@", strings.Join(want, "\n"),
	).Replace(installScript)
}
