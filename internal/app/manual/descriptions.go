package manual

import (
	"builder/internal/app/syntax"
	"builder/internal/base/diag"
)

// About is the description of the tool in its help.
const About = `Builds the wheels and libraries that distributed training stands on, Horovod with RCCL
or NCCL, NCCL, RCCL and their tests, and proves what they are before anybody installs
them. Every input is pinned by digest, a build step has no network, and what a gate
refused cannot be published.

Axes are flags: an exact value (--rocm 6.1 is the newest 6.1.x), a list
(--arch gfx90a,gfx1100), a constraint (--rocm '>=5.7,<6.2') or all. What is not named
falls to the first compatible value of the recipe, or of builder.yaml.`

// A Description holds the examples and exit codes of a verb for help and reference.
type Description struct {
	Examples []syntax.Example
	Exits    []diag.Code // in addition to 0, 1 and 130, which every verb has
}

// Descriptions holds the descriptions of all verbs, by the words after the tool's name.
var Descriptions = map[string]Description{
	"": {
		[]syntax.Example{
			{Line: "builder run horovod --rocm 5.7", Does: "build, gate and sign the wheel"},
			{Line: "builder plan horovod --rocm 6.1", Does: "say first what that would be, and why"},
			{Line: "builder doctor horovod", Does: "ask whether this host can do it"},
		},
		[]diag.Code{diag.Usage},
	},
	"run": {
		[]syntax.Example{
			{Line: "builder run horovod --rocm 5.7", Does: "the preferred cell with ROCm 5.7"},
			{Line: "builder run horovod --rocm 5.7 --locked --offline", Does: "once more, of nothing but the store"},
			{Line: "builder run nccl --cuda '>=12.4' --jobs 2 --fail-fast", Does: "all cells with a newer CUDA, two at a time"},
			{Line: "builder run horovod --rocm all --engine tcp://one:1234 --engine 'tcp://two:1234#jobs=4&memory=256GB'", Does: "all cells, spread over two engines"},
			{Line: "builder run horovod --from oci://registry.example.com/wheels --trust ci.pem.pub", Does: "take what the CI has built, build the rest"},
			{Line: "builder run horovod --set source.horovod=https://mirror.example.com/horovod.tar.gz", Does: "the same bytes from another place"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Patch, diag.Build, diag.Gate, diag.Fetch, diag.NoEngine},
	},
	"plan": {
		[]syntax.Example{
			{Line: "builder plan horovod --rocm 6.1 --arch gfx90a,gfx942", Does: "two cells, with patches, gates and reasons"},
			{Line: "builder plan horovod --rocm all", Does: "every ROCm, and what excludes those that are left out"},
			{Line: "builder plan horovod --rocm 5.7 --diff", Does: "which steps run again since the last run, and why"},
			{Line: "builder plan horovod --json | jq -r '.cells[].id'", Does: "the ids of the cells"},
			{Line: "builder plan horovod --rocm 6.1 --locked", Does: "and exit 3 where a run with --locked would end so"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Fetch},
	},
	"matrix": {
		[]syntax.Example{
			{Line: "builder matrix horovod --rocm '>=6.0' --all --format text", Does: "a table of all cells with these ROCms"},
			{Line: "builder matrix --condense --format github", Does: "a few cells for a pull request"},
			{Line: "builder matrix --format github --shard 2/3", Does: "the second third of all, for every night"},
			{Line: "builder matrix horovod --format gitlab > cells.yml", Does: "a child pipeline"},
		},
		[]diag.Code{diag.Usage},
	},
	"lock": {
		[]syntax.Example{
			{Line: "builder lock horovod --check", Does: "compare, and write nothing"},
			{Line: "builder lock horovod --recipes . --all", Does: "lock every cell of a recipe; without the recipe, of all of them"},
			{Line: "builder lock horovod --recipes . --upgrade numpy", Does: "move one pin of the lock in this checkout"},
			{Line: "builder lock horovod --recipes . --rocm all --update --prune", Does: "move all pins, drop what no cell needs"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Fetch},
	},
	"gate": {
		[]syntax.Example{
			{Line: "builder gate out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311-gfx90a", Does: "judge by what the cell promised"},
			{Line: "builder gate vendor.whl", Does: "say what a wheel is that promises nothing"},
			{Line: "builder gate vendor.whl --expect framework=tensorflow,nccl=rccl,arch=gfx90a", Does: "and judge it"},
			{Line: "builder gate --env .venv", Does: "say which NCCL a process of an environment gets, and whether it is the right one"},
			{Line: "builder gate out/nccl-2.29.7+cuda13.0-verbs-sm_90 --gpus all --tests nccl_tests.whl --attach", Does: "on GPUs, with the verdicts signed and kept"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Gate},
	},
	"verify": {
		[]syntax.Example{
			{Line: "builder verify out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311-gfx90a", Does: "what this host has built"},
			{Line: "builder verify horovod.whl --trust ci.pem.pub --policy stable", Does: "what others have, to a higher demand"},
			{Line: "builder verify horovod.whl --trust ci.pem.pub --rebuild", Does: "build it once more and compare the bytes"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Patch, diag.Build, diag.Gate, diag.Fetch, diag.NoEngine},
	},
	"publish": {
		[]syntax.Example{
			{Line: "builder publish out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311-gfx90a --to file:/srv/wheels", Does: "into a static index for pip and uv"},
			{Line: "builder publish out/nccl-2.29.7+cuda13.0-verbs-sm_90 --to oci://registry.example.com/wheels --channel stable", Does: "into a registry, for the strict"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Gate, diag.Publish},
	},
	"publish promote": {
		[]syntax.Example{
			{Line: "builder publish promote nccl-2.29.7+cuda13.0-verbs-sm_90 --at oci://registry.example.com/wheels --to stable", Does: "once the gates on GPUs have passed"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Gate, diag.Publish},
	},
	"publish prune": {
		[]syntax.Example{
			{Line: "builder publish prune --at file:/srv/wheels --older-than 90 --keep 3", Does: "say what may go; --yes removes it"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Publish},
	},
	"publish yank": {
		[]syntax.Example{
			{Line: "builder publish yank nccl-2.29.7+cuda13.0-verbs-sm_90 --at file:/srv/wheels --because 'hangs on two nodes'", Does: "warn whoever asks for it"},
			{Line: "builder publish yank nccl-2.29.7+cuda13.0-verbs-sm_90 --at file:/srv/wheels --undo", Does: "take the word back"},
		},
		[]diag.Code{diag.Usage, diag.Publish},
	},
	"publish list": {
		[]syntax.Example{
			{Line: "builder publish list --at file:/srv/wheels", Does: "all that is published there"},
			{Line: "builder publish list --at https://wheels.example.com stable gfx90a", Does: "what is stable and for gfx90a"},
		},
		[]diag.Code{diag.Usage, diag.Publish, diag.Fetch},
	},
	"logs": {
		[]syntax.Example{
			{Line: "builder logs", Does: "the cells of the last run, their steps and how they ended"},
			{Line: "builder logs horovod build --tail 50", Does: "the end of the build of the one cell with that in its name"},
			{Line: "builder logs -f", Does: "what is printed now, until the step ends"},
		},
		[]diag.Code{diag.Usage},
	},
	"patch": {
		[]syntax.Example{{Line: "builder patch audit", Does: "judge every patch of every recipe"}},
		[]diag.Code{diag.Usage},
	},
	"patch show": {
		[]syntax.Example{{Line: "builder patch show horovod", Does: "the patches with their reasons and conditions"},
			{Line: "builder patch show horovod --as-diff grouped-allreduce", Does: "one as a diff that upstream can take"}},
		[]diag.Code{diag.Usage, diag.Patch},
	},
	"patch audit": {
		[]syntax.Example{
			{Line: "builder patch audit", Does: "all patches, on the sources that are here"},
			{Line: "builder patch audit horovod --fetch", Does: "on the sources of every version"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Patch, diag.Fetch},
	},
	"init": {
		[]syntax.Example{
			{Line: "builder init site", Does: "empty folders with schemas"},
			{Line: "builder init site --recipe horovod", Does: "with a recipe to be changed"},
		},
		[]diag.Code{diag.Usage},
	},
	"debug": {
		[]syntax.Example{{Line: "builder debug shell gfx90a", Does: "look around where the build step of a cell begins"}},
		[]diag.Code{diag.Usage},
	},
	"debug rootfs": {
		[]syntax.Example{
			{Line: "builder debug rootfs horovod --rocm 5.7 --to /tmp/horovod", Does: "then /tmp/horovod/build runs the build step"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Patch, diag.Build, diag.Fetch, diag.NoEngine},
	},
	"debug shell": {
		[]syntax.Example{
			{Line: "builder debug shell gfx90a", Does: "before the build step of the one cell with that in its name"},
			{Line: "builder debug shell gfx90a --at patch", Does: "the source as upstream released it"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Patch, diag.Build, diag.Fetch, diag.NoEngine},
	},
	"debug repro": {
		[]syntax.Example{
			{Line: "builder debug repro gfx90a --to /tmp/failed", Does: "then /tmp/failed/build replays the build step"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Patch, diag.Build, diag.Fetch, diag.NoEngine},
	},
	"bench": {
		[]syntax.Example{
			{
				Line: "builder bench --tests nccl_tests.whl --library vendor=vendor.whl --library ours=out/nccl-2.29.7+cuda13.0-verbs-sm_90",
				Does: "ours against that of the vendor",
			},
			{Line: "builder bench --library rccl --library ours=out/rccl-6.2.0+rocm6.2-gfx942", Does: "ours against the RCCL of this host"},
			{Line: "builder bench --render out/bench.json", Does: "draw the page of an earlier measurement again"},
		},
		[]diag.Code{diag.Usage, diag.Gate},
	},
	"profile": {
		[]syntax.Example{
			{Line: "builder profile openrlhf --rocm 6.1 --ray 2.12.0", Does: "what OpenRLHF needs with this Ray, and why"},
			{Line: "builder profile openrlhf --version 0.11.2 --format ray-runtime-env > env.json", Does: "for ray job submit --runtime-env-json"},
			{Line: "builder profile rccl --fabric infiniband --gpu mi300 --format dockerfile", Does: "for an image"},
			{Line: "builder profile nccl --fabric roce --set-env NCCL_SOCKET_IFNAME=eth0 > nccl.env", Does: "with a variable of the site, for docker run --env-file"},
			{Line: "builder profile openrlhf --json | jq -r '.variables[] | .name + \"=\" + .value'", Does: "for a program"},
		},
		[]diag.Code{diag.Usage},
	},
	"diagnose": {
		[]syntax.Example{
			{Line: "builder diagnose build.log", Does: "a build that failed, by whatever tool"},
			{Line: "builder diagnose out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311-gfx90a", Does: "the logs and the wheel of a cell"},
			{Line: "builder diagnose libnccl.so.2 dist/*.whl --exit-code", Does: "libraries and wheels; exit 6 on an error"},
			{Line: "kubectl logs job/train | builder diagnose -", Does: "a job that failed, and how its ranks were joined"},
		},
		[]diag.Code{diag.Usage, diag.Gate},
	},
	"report": {
		[]syntax.Example{{Line: "builder report merge runs/* --out report", Does: "the runs of many machines as one"}},
		[]diag.Code{diag.Usage},
	},
	"report merge": {
		[]syntax.Example{
			{Line: "builder report merge runs/* --out report", Does: "one page and one exit code for all"},
			{Line: `builder report merge runs/* --matrix cells.json --format markdown >> "$GITHUB_STEP_SUMMARY"`, Does: "a summary, and every cell must be told of"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Patch, diag.Build, diag.Gate, diag.Fetch, diag.NoEngine},
	},
	"list": {
		[]syntax.Example{
			{Line: "builder list", Does: "recipes, axes and values"},
			{Line: "builder list --json | jq '.[].name'", Does: "the names of the recipes"},
		},
		[]diag.Code{diag.Usage},
	},
	"store": {
		[]syntax.Example{{Line: "builder store list", Does: "how much it holds"}},
		[]diag.Code{diag.Usage},
	},
	"store export": {
		[]syntax.Example{
			{Line: "builder store export horovod --rocm 5.7 --to horovod.tar", Does: "all that a machine without a network needs"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Fetch},
	},
	"store import": {
		[]syntax.Example{{Line: "builder store import horovod.tar", Does: "take it there"}},
		[]diag.Code{diag.Usage, diag.Drift, diag.Fetch},
	},
	"store gc": {
		[]syntax.Example{
			{Line: "builder store gc --dry-run", Does: "say what would go"},
			{Line: "builder store gc", Does: "remove it"},
			{Line: "builder store gc --keep 50GB --keep-engine", Does: "touch the store alone"},
		},
		[]diag.Code{diag.Usage, diag.NoEngine},
	},
	"store verify": {
		[]syntax.Example{{Line: "builder store verify", Does: "read all of it"}},
		[]diag.Code{diag.Usage, diag.Fetch},
	},
	"store list": {
		[]syntax.Example{{Line: "builder store list --json", Does: "for a program"}},
		[]diag.Code{diag.Usage},
	},
	"doctor": {
		[]syntax.Example{
			{Line: "builder doctor", Does: "the engine and this host"},
			{Line: "builder doctor horovod --rocm 6.1", Does: "and what the cell for ROCm 6.1 needs"},
			{Line: `builder doctor --json | jq '.checks[] | select(.verdict == "fail")'`, Does: "only what fails"},
		},
		[]diag.Code{diag.Usage, diag.NoEngine},
	},
	"engine": {
		[]syntax.Example{{Line: "builder engine status", Does: "whether it runs"}},
		[]diag.Code{diag.Usage},
	},
	"engine up": {
		[]syntax.Example{
			{Line: "builder engine up", Does: "start it before the first run needs it"},
			{Line: "builder engine up --engine-idle 4h --no-install", Does: "keep it longer, and leave the host's packages alone"},
		},
		[]diag.Code{diag.Usage, diag.Fetch, diag.NoEngine},
	},
	"engine image": {
		[]syntax.Example{{Line: "builder engine image --to engine.tar", Does: "write it; docker load -i engine.tar takes it"}},
		[]diag.Code{diag.Usage, diag.Fetch, diag.NoEngine},
	},
	"engine down": {
		[]syntax.Example{{Line: "builder engine down", Does: "what it has cached stays"}},
		[]diag.Code{diag.Usage, diag.NoEngine},
	},
	"engine status": {
		[]syntax.Example{{Line: "builder engine status --json", Does: "for a program"}},
		[]diag.Code{diag.Usage, diag.NoEngine},
	},
	"key": {
		[]syntax.Example{{Line: "builder key show", Does: "what others need to check this host's signatures"}},
		[]diag.Code{diag.Usage},
	},
	"key new": {
		[]syntax.Example{{Line: "builder key new signing.pem --days 365", Does: "a key that counts for a year"}},
		[]diag.Code{diag.Usage},
	},
	"key show": {
		[]syntax.Example{{Line: "builder key show > ours.pem.pub", Does: "a file for --trust of others"}},
		[]diag.Code{diag.Usage},
	},
	"config": {
		[]syntax.Example{{Line: "builder config show --origin", Does: "what counts, and where it was said"}},
		[]diag.Code{diag.Usage},
	},
	"config show": {
		[]syntax.Example{
			{Line: "builder config show --origin", Does: "every setting, with file and line"},
			{Line: `builder config show --json | jq '.settings[] | select(.origin == "file")'`, Does: "only what files say"},
		},
		[]diag.Code{diag.Usage},
	},
	"config path": {
		[]syntax.Example{{Line: "builder config path", Does: "which files are read"}},
		[]diag.Code{diag.Usage},
	},
	"config schema": {
		[]syntax.Example{
			{Line: "builder config schema recipe > recipes/schema.json", Does: "for # yaml-language-server: $schema=schema.json"},
			{Line: "builder config schema config", Does: "of builder.yaml"},
		},
		[]diag.Code{diag.Usage},
	},
	"completion": {
		[]syntax.Example{{Line: "builder completion bash > /etc/bash_completion.d/builder", Does: "for every user of this host"}},
		[]diag.Code{diag.Usage},
	},
	"completion man": {
		[]syntax.Example{
			{Line: "builder completion man run | man -l -", Does: "read the page of run"},
			{Line: "builder completion man --out /usr/local/share/man/man1", Does: "install all pages"},
		},
		[]diag.Code{diag.Usage},
	},
	"version": {
		[]syntax.Example{{Line: "builder version --json", Does: "for a report of a bug"}},
		[]diag.Code{diag.Usage},
	},
}

// ExitMeanings explains each exit code in one line. docs/exit-codes.md has details.
var ExitMeanings = map[diag.Code]string{
	diag.OK:          "done",
	diag.Unexpected:  "a fault that has no class: a bug, or a host that misbehaves",
	diag.Usage:       "flags, builder.yaml, recipes, patches or images as written",
	diag.Drift:       "a lock lacks something or was edited, or an image is not what the catalogue says",
	diag.Patch:       "a patch did not do what it promises",
	diag.Build:       "a build step failed",
	diag.Gate:        "a gate did not pass, or what is said of a wheel does not hold",
	diag.Publish:     "a destination refused, cannot be reached, or has other bytes under the name",
	diag.Fetch:       "unreachable, or a size or digest that does not match",
	diag.NoEngine:    "no engine can be had, or this host lacks something that the work needs",
	diag.Interrupted: "SIGINT or SIGTERM",
}
