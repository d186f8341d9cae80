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

// InstallScript returns a shell script to run as root in the bootstrapped file system.
// It needs no network: dir holds all packages of the list under their file names. The
// script fails unless exactly the packages of the list are installed, except those to
// unpack, whose files it lays beside them.
func InstallScript(packages []Package, dir string) string {
	var bootstrap, all, want, unpack []string
	for _, p := range packages {
		file := shell.Quote(path.Join(dir, path.Base(p.Path)))
		if p.Unpack {
			unpack = append(unpack, file)
			continue
		}
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
		"@UNPACK@", strings.Join(unpack, " "),
	).Replace(installScript)
}
