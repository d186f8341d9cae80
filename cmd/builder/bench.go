package main

import (
	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/judge"
	"builder/internal/base/diag"
	"builder/internal/plan/catalogue"
	"builder/internal/view/term"
)

func benchCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "bench", Usage: "measure one library, or compare two, with nccl-tests or rccl-tests on GPUs", ArgsUsage: "LIBRARY [OTHER]",
		Description: "LIBRARY is libnccl.so.2 or librccl.so.1, a directory with one of them, a wheel, or the\n" +
			"directory of a cell. The libraries run in turn, three times; the table has the medians of\n" +
			"the bus bandwidth and their ratio, LIBRARY to OTHER. Wrong values end with exit 6.",
		Flags: benchFlags(),
		Action: func(c *cli.Context) error {
			r, err := readBench(c)
			in, err2 := readInvocation(c, catalogue.Catalogue{}, out)
			if err := in.begin(c.Context, err, err2); err != nil {
				return err
			}
			done, err := judge.Bench(c.Context, in.Setup, r)
			return printEnd(c, in, done, err, show.Bench)
		},
	}
}

func benchFlags() []cli.Flag {
	flags := []cli.Flag{
		jsonFlag(),
		&cli.StringFlag{Name: "collectives", Value: "all_reduce,all_gather,broadcast,reduce_scatter,alltoall,sendrecv", Usage: "measure the collectives `A,B,…`"},
		progressFlag(),
	}
	for _, f := range deviceFlags() {
		switch f.Names()[0] {
		case "gpus", "launcher", "programs", "max-bytes", "time-limit", "set-env":
			flags = append(flags, f)
		}
	}
	return flags
}

func readBench(c *cli.Context) (judge.BenchRequest, error) {
	r := judge.BenchRequest{Library: c.Args().First(), Collectives: list(c.String("collectives"))}
	if c.NArg() < 1 || c.NArg() > 2 {
		return r, diag.Errorf(diag.Usage, "%s: name one library, or two to compare", c.Command.HelpName).
			WithHint("%s out/CELL VENDORS.whl --gpus all --programs DIR", c.Command.HelpName)
	}
	if !c.IsSet("gpus") || !c.IsSet("programs") {
		return r, diag.Errorf(diag.Usage, "%s needs GPUs and the programs of nccl-tests or rccl-tests", c.Command.HelpName).
			WithHint("add --gpus all --programs DIR|WHEEL; `builder run nccl-tests` or `builder run rccl-tests` builds a wheel of them")
	}
	var err error
	r.Device, err = readDevice(c)
	if r.Device != nil {
		r.Device.Library = c.Args().Get(1)
	}
	return r, err
}
