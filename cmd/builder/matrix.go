package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/plan/ci"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/internal/view/term"
)

// matrixFormats are the words that --format takes, the default first.
var matrixFormats = []string{"json", "github", "gitlab", "text"}

const matrixDescription = `Without RECIPE every cell of every recipe. With RECIPE alone every cell of it;
an axis that is named filters, and the others fall to the recipe's preference as
in run, unless --all leaves them open.

json is a list of {id, recipe, axes, flags}: ` + "`builder run`" + ` with these flags builds
this cell and no other. github is one line {"include": [{id, recipe, args,
artifact}]} with the flags as one text for a shell and a name that is fit for an
artifact or a cache. gitlab is a child pipeline: a job for each cell, which extends
.builder, and one that merges their reports. text is a table.

--shard i/n keeps a part: a cell is in exactly one, which follows from its id and
does not change when other cells come or go. --condense keeps a few cells that
together hold every word and the oldest and newest version of each axis, and the
values on both sides of each boundary that a rule, a variant or a patch names.

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
		jsonFlag(),
		&cli.StringFlag{Name: "format", Value: matrixFormats[0], Usage: "print the cells as `FORMAT`: " + strings.Join(matrixFormats, ", ")},
		&cli.StringFlag{Name: "shard", Usage: "keep part `i/n` of the cells: --shard 2/3"},
		&cli.BoolFlag{Name: "condense", Usage: "keep a few cells that stand for all"},
		allFlag("leave every axis open that is not named; without RECIPE: every recipe"),
	}
}

func allFlag(usage string) cli.Flag { return &cli.BoolFlag{Name: "all", Usage: usage} }

func matrixCommand(cat catalogue.Catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "matrix", Usage: "print cells as the jobs of a build matrix", ArgsUsage: "[RECIPE] [axes]",
		Description: matrixDescription,
		Flags:       matrixFlags(), OnUsageError: verbUsageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			if fault != nil || c.Args().Present() {
				return unknownRecipe(cat, fault)(c)
			}
			return printMatrix(c, cat, cat.Recipes, nil, out)
		},
		Subcommands: recipeCommands(cat, fault, matrixFlags(), func(c *cli.Context, o options) error {
			return printMatrix(c, cat, []*recipe.Recipe{o.recipe}, o.filter, out)
		}),
	}
}

// matrixOptions is what the flags of matrix say.
type matrixOptions struct {
	format   string
	shard    ci.Shard
	condense bool
	all      bool
}

func printMatrix(c *cli.Context, cat catalogue.Catalogue, rs []*recipe.Recipe, filter matrix.Filter, out printer) error {
	o, err := readMatrixOptions(c)
	if err != nil {
		return err
	}
	jobs, err := makeMatrix(cat, rs, filter, o, out.note)
	if err != nil {
		return err
	}
	part := slices.DeleteFunc(slices.Clone(jobs), func(j ci.Job) bool { return !o.shard.Holds(j.ID) })
	switch o.format {
	case "github":
		return printGitHub(out, jobs, part)
	case "gitlab":
		return printGitLab(out, part)
	case "text":
		printJobs(out, part)
		return nil
	}
	return printJSON(out, part)
}

// readMatrixOptions reads flags that may stand before and after the recipe.
func readMatrixOptions(c *cli.Context) (matrixOptions, error) {
	at := func(name string) *cli.Context {
		for _, level := range c.Lineage() {
			if level.IsSet(name) {
				return level
			}
		}
		return c
	}
	o := matrixOptions{
		format: at("format").String("format"), shard: ci.Shard{Index: 1, Count: 1},
		condense: at("condense").Bool("condense"), all: at("all").Bool("all"),
	}
	if !slices.Contains(matrixFormats, o.format) {
		return o, diag.Errorf(diag.Usage, "--format: %q is not known", o.format).WithHint("%s", diag.DidYouMean(o.format, matrixFormats))
	}
	if at("json").Bool("json") && o.format != "json" {
		return o, diag.Errorf(diag.Usage, "--json and --format %s contradict each other", o.format).WithHint("give one of them")
	}
	if part := at("shard"); part.IsSet("shard") {
		shard, err := ci.ParseShard(part.String("shard"))
		if err != nil {
			return o, diag.Errorf(diag.Usage, "--shard: %w", err).WithHint("the parts of three are 1/3, 2/3 and 3/3")
		}
		o.shard = shard
	}
	return o, nil
}

// makeMatrix returns the jobs of the chosen cells of all recipes, before they are
// dealt out to shards. What was asked for and is in none of them is noted.
func makeMatrix(cat catalogue.Catalogue, rs []*recipe.Recipe, filter matrix.Filter, o matrixOptions, note func(string, ...any)) ([]ci.Job, error) {
	jobs := []ci.Job{}
	for _, r := range rs {
		cells, _, err := matrix.Expand(r, open(r, filter, o.all))
		if err != nil {
			return nil, err
		}
		for _, p := range ci.Absent(r, filter, cells) {
			note("no cell has %s %s: `builder plan %s --%s %s` says why", p.Axis, p.Value, r.Name, p.Axis, shell.Word(p.Value))
		}
		if o.condense {
			if cells, err = condense(cat, cells); err != nil {
				return nil, err
			}
		}
		for _, cell := range cells {
			job, err := ci.NewJob(cell)
			if err != nil {
				return nil, err
			}
			jobs = append(jobs, atSite(job, cat.Site))
		}
	}
	return jobs, nil
}

// atSite returns a job that finds its recipe: that of a site is where the site is.
func atSite(j ci.Job, site string) ci.Job {
	if site != "" {
		j.Flags = slices.Insert(slices.Clone(j.Flags), 1, "--recipes", site)
	}
	return j
}

// open returns a filter that names every axis that the given one leaves out, if
// that is asked for or if it names none.
func open(r *recipe.Recipe, filter matrix.Filter, all bool) matrix.Filter {
	if len(filter) > 0 && !all {
		return filter
	}
	opened := matrix.Everything(r)
	maps.Copy(opened, filter)
	return opened
}

// condense keeps a few cells of one recipe that stand for all.
func condense(cat catalogue.Catalogue, cells []matrix.Cell) ([]matrix.Cell, error) {
	points, err := pointsOf(cat, cells)
	if err != nil {
		return nil, err
	}
	few, err := ci.Condense(points, cat.Patches[cells[0].Recipe.Name])
	if err != nil {
		return nil, err
	}
	kept := make([]matrix.Cell, len(few))
	for i, p := range few {
		kept[i] = p.Cell
	}
	return kept, nil
}

// pointsOf adds to cells what their images state.
func pointsOf(cat catalogue.Catalogue, cells []matrix.Cell) ([]ci.Point, error) {
	points := make([]ci.Point, len(cells))
	for i, cell := range cells {
		facts, err := lock.Facts(cell, cat.LockInputs())
		if err != nil {
			return nil, fmt.Errorf("condensing the matrix of %s: %w", cell.Recipe.Name, err)
		}
		points[i] = ci.Point{Cell: cell, Facts: facts}
	}
	return points, nil
}

func printJobs(out printer, jobs []ci.Job) {
	var rows [][]string
	for _, j := range jobs {
		rows = append(rows, []string{j.ID, j.Recipe, matrix.Pairs(j.Axes)})
	}
	term.Table(out.stdout, term.Width(out.stdout), []string{"cell", "recipe", "axes"}, rows)
}
