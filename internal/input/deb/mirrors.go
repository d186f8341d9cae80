package deb

import (
	"context"
	"os/exec"
	"regexp"
	"slices"

	"builder/internal/base/diag"
)

// Mirror returns the mirror used to resolve names.
func Mirror(mirrors []string) (string, error) {
	if len(mirrors) == 0 {
		return "", diag.Errorf(diag.Fetch, "no Debian mirror: the host's apt configuration has none").
			WithHint("set BUILDER_MIRROR_DEBIAN to the address of a mirror")
	}
	return mirrors[0], nil
}

// HostMirrors returns the base addresses of the Debian archives in the host's apt
// configuration. apt reads the configuration itself and asks no archive. A host without
// apt has no mirrors.
func HostMirrors(ctx context.Context) []string {
	out, err := exec.CommandContext(ctx, "apt-get", "update", "--print-uris").Output()
	if err != nil {
		return nil
	}
	return parseIndexes(string(out))
}

// indexLine is the line of apt about the index of a Debian suite:
//
//	'http://…/debian/dists/trixie/main/binary-amd64/Packages.xz' …_Packages 0
//
// The archives of Ubuntu, of security updates and of third parties have other names.
var indexLine = regexp.MustCompile(`(?m)^'((?:https?://|file:)[^']*/debian)/dists/` +
	`(?:bullseye|bookworm|trixie|forky|duke|sid|(?:old|oldold)?stable|testing|unstable)(?:-[^/']*)?/[^']*/binary-[^/']*/Packages`)

// parseIndexes returns the addresses of the Debian archives in apt's list of indexes.
func parseIndexes(text string) []string {
	var mirrors []string
	for _, m := range indexLine.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(mirrors, m[1]) {
			mirrors = append(mirrors, m[1])
		}
	}
	return mirrors
}
