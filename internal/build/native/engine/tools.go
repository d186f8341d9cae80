//go:build tools

// Package engine pins the programs of the Dagger engine. builder builds them from the
// Go module proxy on hosts without Docker.
//
// builder itself does not contain this package. Its imports keep the programs in go.mod
// and go.sum, which are the pin. docs/decisions/dagger.md gives the reasons.
package engine

import (
	_ "github.com/dagger/dagger/cmd/dagger"
	_ "github.com/dagger/dagger/cmd/dialstdio"
	_ "github.com/dagger/dagger/cmd/engine"
	_ "github.com/dagger/dagger/cmd/init"
)
