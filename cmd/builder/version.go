package main

import (
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/build/native"
	"builder/internal/view/term"
)

// version is set by the linker in releases.
var version = "devel"

// The flag --version prints the versions of builder, of its engine and of Go.
func init() { cli.VersionPrinter = printVersion }

func printVersion(c *cli.Context) {
	revision, compiler := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		compiler = info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	term.Printer{Stdout: c.App.Writer}.Say("%s\nengine %s\n%s", strings.TrimSpace("builder "+version+" "+revision), native.Version, compiler)
}
