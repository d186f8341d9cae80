//go:build tools

// Package engine pins the programs of the Dagger engine, so that builder can
// build them from the Go module proxy on a host without Docker.
//
// Nothing here is compiled into builder: the imports exist for go.mod and
// go.sum, which are the pin. See docs/engine.md.
package engine

import (
	_ "github.com/dagger/dagger/cmd/dagger"
	_ "github.com/dagger/dagger/cmd/dialstdio"
	_ "github.com/dagger/dagger/cmd/dnsname"
	_ "github.com/dagger/dagger/cmd/engine"
	_ "github.com/dagger/dagger/cmd/init"
)
