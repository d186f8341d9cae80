package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// about is the description of the tool in its help.
const about = `Builds wheels and libraries for distributed training: Horovod with RCCL or NCCL, NCCL,
RCCL and their tests. Gates check each artifact before you install it. Every input is
pinned by digest, a build step has no network, and a refused artifact cannot be
published.

Axes are flags: an exact value (--rocm 6.1 is the newest 6.1.x), a list
(--arch gfx90a,gfx1100), a constraint (--rocm '>=5.7,<6.2') or all. An axis without a
flag takes the first compatible value of the recipe.`

// An example is a command line to copy, and its purpose.
type example struct{ line, does string }

// examples holds the examples of all verbs, by the words after the tool's name. A verb
// with subverbs alone has none.
var examples = map[string][]example{
	"": {
		{"builder run horovod --rocm 5.7", "build, gate and sign the wheel"},
		{"builder plan horovod --rocm 6.1", "print the plan and its reasons first"},
		{"builder doctor horovod", "check whether this host can build it"},
	},
	"run": {
		{"builder run horovod --rocm 5.7", "build the preferred cell with ROCm 5.7"},
		{"builder run horovod --rocm 5.7 --locked --offline", "build it again from the store alone"},
		{"builder run nccl --version '>=2.29' --jobs 2 --fail-fast", "build the cells of NCCL 2.29 and newer, two at a time"},
		{"builder run horovod --from oci://registry.example.com/wheels --trust ci.pem.pub", "take cells that the CI published, build the others"},
	},
	"plan": {
		{"builder plan horovod --rocm 6.1 --arch gfx90a,gfx942", "explain two cells: patches, gates and reasons"},
		{"builder plan horovod --rocm all", "explain every ROCm, and the reason for each one left out"},
	},
	"matrix": {
		{"builder matrix horovod --rocm '>=6.0' --all --format text", "print a table of all cells with ROCm 6.0 or newer"},
		{"builder matrix --condense --format github", "select a few cells for a pull request"},
		{"builder matrix --condense --format github --shard 2/3", "select the second third of the condensed matrix, for a nightly build"},
	},
	"lock": {
		{"builder lock horovod --check", "compare only, write nothing"},
		{"builder lock horovod --recipes . --all", "lock every cell of a recipe; without RECIPE, of all recipes"},
		{"builder lock horovod --recipes . --update numpy", "update one pin of the lock in this checkout"},
		{"builder lock horovod --recipes . --rocm all --update all --prune", "update all pins, remove unused ones"},
	},
	"show": {
		{"builder show out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311", "show a wheel built on this host"},
		{"builder show vendor.whl", "show the facts of a wheel of others"},
	},
	"gate": {
		{"builder gate out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311", "check the wheel against its entry"},
		{"builder gate vendor.whl", "print the facts of a wheel without an entry"},
		{"builder gate vendor.whl --expect framework=tensorflow,nccl=rccl,arch=gfx90a", "check it against these facts"},
		{"builder gate --env .venv", "check which NCCL a process of an environment loads"},
		{"builder gate out/nccl-2.29.7+cuda13-verbs-sm_80+sm_90 --gpus all --programs nccl_tests.whl --against vendor.whl --attach", "run the gates on GPUs too, sign and keep the verdicts"},
	},
	"verify": {
		{"builder verify out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311", "verify a wheel built on this host"},
		{"builder verify horovod.whl --trust ci.pem.pub --channel stable", "verify a wheel of another signer by the stricter policy"},
		{"builder verify horovod.whl --from https://wheels.example.org --trust ci.pem.pub", "verify a wheel of pip download by its published statements"},
	},
	"publish": {
		{"builder publish out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311 --to file:/srv/wheels", "publish to a static index for pip and uv"},
		{"builder publish out/nccl-2.29.7+cuda13-verbs-sm_80+sm_90 --to oci://registry.example.com/wheels --channel stable", "publish to a registry by the stricter policy"},
	},
	"publish promote": {{"builder publish promote nccl-2.29.7+cuda13-verbs-sm_80+sm_90 --at oci://registry.example.com/wheels", "promote after the gates on GPUs have passed"}},
	"publish yank": {
		{"builder publish yank nccl-2.29.7+cuda13-verbs-sm_80+sm_90 --at file:/srv/wheels --because 'hangs on two nodes'", "withdraw a broken wheel"},
		{"builder publish yank nccl-2.29.7+cuda13-verbs-sm_80+sm_90 --at file:/srv/wheels --undo", "allow the wheel again"},
	},
	"publish list": {
		{"builder publish list --at file:/srv/wheels", "list all published wheels"},
	},
	"patch show": {
		{"builder patch show horovod", "list the patches with their reasons and conditions"},
		{"builder patch show horovod --as-diff grouped-allreduce", "print one as a diff for upstream"},
	},
	"patch audit": {
		{"builder patch audit", "check all patches on the sources in the store"},
		{"builder patch audit horovod --fetch", "fetch the sources of every version first"},
	},
	"debug shell": {
		{"builder debug shell gfx90a", "open a shell before the build step of the one cell that matches"},
		{"builder debug shell gfx90a --to /tmp/failed", "keep the file system; /tmp/failed/build runs the build step again"},
	},
	"bench": {
		{"builder bench out/nccl-2.29.7+cuda13-verbs-sm_80+sm_90 vendor.whl --gpus all --programs nccl_tests.whl", "compare our library with the vendor's"},
		{`builder bench librccl.so.1 --gpus 16 --launcher "mpirun -np 16 -H a:8,b:8" --programs rccl-tests/build --json`, "measure a library on two hosts"},
	},
	"profile": {
		{"builder profile openrlhf --rocm 6.1 --ray 2.12.0", "print the settings for OpenRLHF with this Ray, with reasons"},
		{"builder profile openrlhf --version 0.11.2 --format json | jq '{env_vars: (.variables | map({(.name): .value}) | add)}'", "write JSON for ray job submit --runtime-env-json"},
		{`builder profile rccl --fabric infiniband --gpu mi300 | sed -n 's/^[A-Z]/ENV &/p'`, "print ENV lines for an image"},
		{"builder profile openrlhf --format json | jq -r '.variables[] | .name + \"=\" + .value'", "print the variables as NAME=VALUE"},
	},
	"diagnose": {
		{"builder diagnose build.log", "diagnose a failed build of any tool"},
		{"builder diagnose out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311", "diagnose the logs of a cell"},
		{"kubectl logs job/train | builder diagnose -", "diagnose a failed job, and print how its ranks were connected"},
	},
	"list": {
		{"builder list", "list recipes, axes and values"},
	},
	"store export": {{"builder store export horovod --rocm 5.7 --to horovod.tar", "write all inputs for a machine without a network"}},
	"store import": {{"builder store import horovod.tar", "read the export on that machine"}},
	"store gc": {
		{"builder store gc --dry-run", "list the removals, remove nothing"},
		{"builder store gc", "free disk space"},
	},
	"store verify": {{"builder store verify", "check the digest of every file"}},
	"doctor": {
		{"builder doctor", "check the engine and this host"},
		{"builder doctor horovod --rocm 6.1", "check the needs of the cell for ROCm 6.1 too"},
		{`builder doctor --json | jq '.checks[] | select(.verdict == "fail")'`, "print failures only"},
	},
	"engine up": {
		{"builder engine up", "start the engine before the first run"},
		{"BUILDER_ENGINE_IMAGE=/site/engine.tar@sha256:8d3f…f3cd builder engine up", "copy the engine and do not compile it; the digest has 64 digits"},
	},
	"engine image":  {{"builder engine image --to engine.tar", "write it for docker load -i engine.tar, and print the value of BUILDER_ENGINE_IMAGE"}},
	"engine down":   {{"builder engine down", "stop the engine, keep its cache"}},
	"engine status": {{"builder engine status", "check whether the engine runs"}},
	"key new":       {{"builder key new signing.pem", "make a key for several hosts"}},
	"key sign":      {{"builder key sign out/CELL --trust build.pub --trust gate.pub --key signing.pem", "sign what the hosts that built and gated a cell have signed"}},
	"key show": {
		{"builder key show > ours.pem.pub", "write a file for --trust on other hosts"},
		{"builder key show builder.pub", "print a key with its id, to compare it with the id in a statement"},
	},
	"config init": {
		{"builder config init site", "make empty directories with schemas"},
		{"builder config init site horovod", "copy a recipe to change"},
	},
	"config completion": {{"builder config completion bash > /etc/bash_completion.d/builder", "install completion for every user of this host"}},
}

// explain completes all verbs: examples at the end of the help, the errors of flags, and
// no verb help.
func explain(app *cli.App) {
	app.Description = about
	app.CustomAppHelpTemplate = cli.AppHelpTemplate + exampleSection(examples[""])
	for _, command := range app.Commands {
		explainVerb(nil, nil, command)
	}
}

// explainVerb explains a verb and those below it. The recipes below a verb share its
// examples.
func explainVerb(above []string, inherited []example, c *cli.Command) {
	words := append(slices.Clone(above), c.Name)
	own, known := examples[strings.Join(words, " ")]
	if !known {
		own = inherited
	}
	template := cli.CommandHelpTemplate
	if len(c.Subcommands) > 0 {
		template = cli.SubcommandHelpTemplate
	}
	template = strings.Replace(template, `{{template "visibleFlagCategoryTemplate" .}}`, axesFirst, 1)
	c.CustomHelpTemplate, c.HideHelpCommand, c.OnUsageError = template+exampleSection(own), true, usageError
	if c.Action == nil {
		c.Action = unknownCommand
	}
	for _, below := range c.Subcommands {
		explainVerb(words, own, below)
	}
}

// axesFirst is the part of a help template for flags with headings: axes, and then the
// others. Package cli prints flags without a heading first.
const axesFirst = `{{range .VisibleFlagCategories}}{{if .Name}}
   {{.Name}}

{{range .Flags}}   {{.}}
{{end}}{{end}}{{end}}{{range .VisibleFlagCategories}}{{if not .Name}}
   Options

{{range .Flags}}   {{.}}
{{end}}{{end}}{{end}}`

// exampleSection returns a part of a help template. It escapes {{ in texts, which the
// template would execute.
func exampleSection(all []example) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nEXAMPLES:\n")
	for _, e := range all {
		b.WriteString("   # " + e.does + "\n   " + e.line + "\n")
	}
	return strings.ReplaceAll(b.String(), "{{", `{{"{{"}}`)
}
