package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/ci"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/internal/view/term"
)

// matrixFormats are the values of --format, the default first.
var matrixFormats = []string{"json", "github", "text"}

const matrixDescription = `Prints every cell of every recipe, or with RECIPE every cell of it. The flag of an
axis filters; the other axes then take the recipe's preference as in run, unless
--all selects all of their values.

json is a list of {id, recipe, axes, flags}: ` + "`builder run`" + ` with these flags builds
exactly this cell. github is one line {"include": [{id, recipe, args, artifact}]}:
args holds the flags for a shell, artifact a valid name for an artifact or a cache.
text is a table.

--shard i/n keeps one of n parts. The id of a cell alone decides its part. --condense
keeps a few cells that together cover every word of each axis, its oldest and newest
version, and both sides of each boundary in a rule, a variant or a patch.

   jobs:
     cells:
       outputs: {matrix: "${{ steps.cells.outputs.matrix }}"}
       steps:
         - id: cells
           run: echo "matrix=$(builder matrix --condense --format github)" >> "$GITHUB_OUTPUT"
     build:
       needs: cells
       strategy: {fail-fast: false, matrix: "${{ fromJSON(needs.cells.outputs.matrix) }}"}
       steps:
         - run: builder run ${{ matrix.args }}   # and keep out/ as ${{ matrix.artifact }}`

func matrixFlags() []cli.Flag {
	return []cli.Flag{
		recipesFlag(),
		formatFlag("print the cells as", matrixFormats),
		&cli.StringFlag{Name: "shard", Usage: "keep part `i/n` of the cells: --shard 2/3"},
		&cli.BoolFlag{Name: "condense", Usage: "keep a few representative cells"},
		allFlag("select every value of the axes without a flag; without RECIPE: every recipe"),
	}
}

func allFlag(usage string) cli.Flag { return &cli.BoolFlag{Name: "all", Usage: usage} }

func matrixCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "matrix", Usage: "print cells as the jobs of a build matrix", ArgsUsage: "[RECIPE] [axes]",
		Description: matrixDescription,
		Flags:       matrixFlags(),
		Action: func(c *cli.Context) error {
			if err != nil || c.Args().Present() {
				return unknownRecipe(cat, err)(c)
			}
			return printMatrix(c, cat, cat.Recipes, nil, out)
		},
		Subcommands: recipeCommands(cat, err, matrixFlags(), func(c *cli.Context, of plan.Selection) error {
			return printMatrix(c, cat, []*recipe.Recipe{of.Recipe}, of.Filter, out)
		}),
	}
}

func printMatrix(c *cli.Context, cat catalogue.Catalogue, rs []*recipe.Recipe, filter matrix.Filter, out term.Printer) error {
	format, err := readFormat(c, matrixFormats)
	shard, err2 := readShard(c)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	jobs, err := ci.Jobs(cat, ci.MatrixRequest{Recipes: rs, Filter: filter, All: c.Bool("all"), Condense: c.Bool("condense")}, out.Note)
	if err != nil {
		return err
	}
	part := slices.DeleteFunc(slices.Clone(jobs), func(j ci.Job) bool { return !shard.Holds(j.ID) })
	switch format {
	case "github":
		matrix, err := ci.GitHub(jobs, part)
		if err != nil {
			return err
		}
		if len(part) == 0 {
			out.Note("the shard is empty, which GitHub refuses: begin the job with `if: fromJSON(…).include[0]`")
		}
		return term.JSON(out.Stdout, matrix, "")
	case "text":
		show.Jobs(out, part)
		return nil
	}
	return out.JSON(part)
}

func readShard(c *cli.Context) (ci.Shard, error) {
	if !c.IsSet("shard") {
		return ci.Shard{Index: 1, Count: 1}, nil
	}
	shard, err := ci.ParseShard(c.String("shard"))
	if err != nil {
		return shard, diag.Errorf(diag.Usage, "--shard: %w", err).WithHint("three shards are 1/3, 2/3 and 3/3")
	}
	return shard, nil
}

// formatFlag chooses one of several formats, the first by default.
func formatFlag(usage string, formats []string) cli.Flag {
	return &cli.StringFlag{Name: "format", Value: formats[0], Usage: usage + " `" + strings.Join(formats, "|") + "`"}
}

func readFormat(c *cli.Context, formats []string) (string, error) {
	format := c.String("format")
	if !slices.Contains(formats, format) {
		return "", diag.Errorf(diag.Usage, "--format: unknown format %q", format).WithHint("%s", diag.DidYouMean(format, formats))
	}
	return format, nil
}
