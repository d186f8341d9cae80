package main

import (
	"github.com/urfave/cli/v2"

	"builder/internal/publishing/publish"
)

func fromFlags() []cli.Flag {
	return []cli.Flag{
		trustFlag(),
		&cli.StringSliceFlag{Name: "from", EnvVars: []string{"BUILDER_FROM"}, Usage: "take a cell that is published at `PLACE` (" + publish.Sources + ") and signed by a trusted key instead of building it; repeatable"},
		&cli.BoolFlag{Name: "from-only", EnvVars: []string{"BUILDER_FROM_ONLY"}, Usage: "build nothing: a cell that --from does not have is an error"},
	}
}
