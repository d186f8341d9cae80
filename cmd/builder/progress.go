package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/view/progress"
)

// autoProgress chooses the format of progress by the kind of stderr.
const autoProgress = string(progress.Auto)

func progressFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "progress", EnvVars: []string{"BUILDER_PROGRESS"}, Value: autoProgress,
		Usage: "show progress as `" + strings.Join(progressFormats(), "|") + "`",
	}
}

func verboseFlag() cli.Flag {
	return &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print the logs of the steps too"}
}

// progressFormats are the values of --progress.
func progressFormats() (words []string) {
	for _, f := range progress.Formats() {
		words = append(words, string(f))
	}
	return words
}

func readProgress(c *cli.Context) (string, error) {
	format := cmp.Or(c.String("progress"), autoProgress)
	if !slices.Contains(progressFormats(), format) {
		return "", diag.Errorf(diag.Usage, "--progress: unknown format %q", format).WithHint("%s", diag.DidYouMean(format, progressFormats()))
	}
	return format, nil
}
