package main

import "builder/internal/base/diag"

// about is the description of the tool in its help.
const about = `Builds wheels and libraries for distributed training: Horovod with RCCL or NCCL, NCCL,
RCCL and their tests. Gates check each artifact before you install it. Every input is
pinned by digest, a build step has no network, and a refused artifact cannot be
published.

Axes are flags: an exact value (--rocm 6.1 is the newest 6.1.x), a list
(--arch gfx90a,gfx1100), a constraint (--rocm '>=5.7,<6.2') or all. An axis without a
flag takes the first compatible value of builder.yaml or of the recipe.`

// An example is a command line to copy.
type example struct {
	Line string
	Does string // its purpose
}

// A description holds the examples and exit codes of a verb for help and reference.
type description struct {
	Examples []example
	Exits    []diag.Code // in addition to 0, 1 and 130, which every verb has
}

// descriptions holds the descriptions of all verbs, by the words after the tool's name.
var descriptions = map[string]description{
	"": {
		[]example{
			{Line: "builder run horovod --rocm 5.7", Does: "build, gate and sign the wheel"},
			{Line: "builder plan horovod --rocm 6.1", Does: "print the plan and its reasons first"},
			{Line: "builder doctor horovod", Does: "check whether this host can build it"},
		},
		[]diag.Code{diag.Usage},
	},
	"run": {
		[]example{
			{Line: "builder run horovod --rocm 5.7", Does: "build the preferred cell with ROCm 5.7"},
			{Line: "builder run horovod --rocm 5.7 --locked --offline", Does: "build it again from the store alone"},
			{Line: "builder run nccl --cuda '>=12.4' --jobs 2 --fail-fast", Does: "build all cells with CUDA 12.4 or newer, two at a time"},
			{Line: "builder run horovod --rocm all --engine tcp://one:1234 --engine 'tcp://two:1234#jobs=4&memory=256GB'", Does: "spread all cells over two engines"},
			{Line: "builder run horovod --from oci://registry.example.com/wheels --trust ci.pem.pub", Does: "take cells that the CI published, build the others"},
			{Line: "builder run horovod --set source.horovod=https://mirror.example.com/horovod.tar.gz", Does: "fetch the same bytes from another place"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Patch, diag.Build, diag.Gate, diag.Fetch, diag.NoEngine},
	},
	"plan": {
		[]example{
			{Line: "builder plan horovod --rocm 6.1 --arch gfx90a,gfx942", Does: "explain two cells: patches, gates and reasons"},
			{Line: "builder plan horovod --rocm all", Does: "explain every ROCm, and the reason for each one left out"},
			{Line: "builder plan horovod --rocm 5.7 --since out", Does: "list the steps that run again since the last run, and why"},
			{Line: "builder plan horovod --json | jq -r '.cells[].id'", Does: "print the ids of the cells"},
			{Line: "builder plan horovod --rocm 6.1 --locked", Does: "exit 3 if run --locked would exit 3"},
		},
		[]diag.Code{diag.Usage, diag.Drift},
	},
	"matrix": {
		[]example{
			{Line: "builder matrix horovod --rocm '>=6.0' --all --format text", Does: "print a table of all cells with ROCm 6.0 or newer"},
			{Line: "builder matrix --condense --format github", Does: "select a few cells for a pull request"},
			{Line: "builder matrix --condense --format github --shard 2/3", Does: "select the second third of the condensed matrix, for a nightly build"},
			{Line: "builder matrix horovod --shard 2/3 > part.json", Does: "write the second third of the cells for a job of another CI service"},
		},
		[]diag.Code{diag.Usage},
	},
	"matrix merge": {
		[]example{
			{Line: "builder matrix merge runs/* --out report", Does: "write one page and return one exit code for all"},
			{Line: `builder matrix merge runs/* --matrix cells.json --format markdown >> "$GITHUB_STEP_SUMMARY"`, Does: "print a summary and require every cell"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Patch, diag.Build, diag.Gate, diag.Fetch, diag.NoEngine},
	},
	"lock": {
		[]example{
			{Line: "builder lock horovod --check", Does: "compare only, write nothing"},
			{Line: "builder lock horovod --recipes . --all", Does: "lock every cell of a recipe; without RECIPE, of all recipes"},
			{Line: "builder lock horovod --recipes . --update numpy", Does: "update one pin of the lock in this checkout"},
			{Line: "builder lock horovod --recipes . --rocm all --update all --prune", Does: "update all pins, remove unused ones"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Fetch},
	},
	"gate": {
		[]example{
			{Line: "builder gate out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311-gfx90a", Does: "check the wheel against its entry"},
			{Line: "builder gate vendor.whl", Does: "print the facts of a wheel without an entry"},
			{Line: "builder gate vendor.whl --expect framework=tensorflow,nccl=rccl,arch=gfx90a", Does: "check it against these facts"},
			{Line: "builder gate --env .venv", Does: "check which NCCL a process of an environment loads"},
			{Line: "builder gate out/nccl-2.29.7+cuda13.0-verbs-sm_90 --gpus all --programs nccl_tests.whl --against vendor.whl --attach", Does: "run the gates on GPUs too, sign and keep the verdicts"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Gate, diag.Publish, diag.Fetch},
	},
	"verify": {
		[]example{
			{Line: "builder verify out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311-gfx90a", Does: "verify a wheel built on this host"},
			{Line: "builder verify horovod.whl --trust ci.pem.pub --channel stable", Does: "verify a wheel of another signer by the stricter policy"},
			{Line: "builder verify horovod.whl --trust ci.pem.pub --rebuild", Does: "rebuild it and compare the bytes"},
			{Line: "builder verify horovod.whl --from https://wheels.example.org --trust ci.pem.pub", Does: "verify a wheel of pip download by its published statements"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Patch, diag.Build, diag.Gate, diag.Fetch, diag.NoEngine},
	},
	"publish": {
		[]example{
			{Line: "builder publish out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311-gfx90a --to file:/srv/wheels", Does: "publish to a static index for pip and uv"},
			{Line: "builder publish out/nccl-2.29.7+cuda13.0-verbs-sm_90 --to oci://registry.example.com/wheels --channel stable", Does: "publish to a registry by the stricter policy"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Gate, diag.Publish},
	},
	"publish promote": {
		[]example{
			{Line: "builder publish promote nccl-2.29.7+cuda13.0-verbs-sm_90 --at oci://registry.example.com/wheels", Does: "promote after the gates on GPUs have passed"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Gate, diag.Publish, diag.Fetch},
	},
	"publish yank": {
		[]example{
			{Line: "builder publish yank nccl-2.29.7+cuda13.0-verbs-sm_90 --at file:/srv/wheels --because 'hangs on two nodes'", Does: "withdraw a broken wheel"},
			{Line: "builder publish yank nccl-2.29.7+cuda13.0-verbs-sm_90 --at file:/srv/wheels --undo", Does: "allow the wheel again"},
		},
		[]diag.Code{diag.Usage, diag.Publish},
	},
	"publish list": {
		[]example{
			{Line: "builder publish list --at file:/srv/wheels", Does: "list all published wheels"},
			{Line: "builder publish list --at https://wheels.example.com --json", Does: "print all records as JSON"},
		},
		[]diag.Code{diag.Usage, diag.Publish, diag.Fetch},
	},
	"logs": {
		[]example{
			{Line: "builder logs", Does: "list the cells and steps of the last run, with their verdicts"},
			{Line: "builder logs horovod build | tail -50", Does: "print the end of the build log of the one cell that matches"},
			{Line: "builder logs -f", Does: "follow the running step until it ends"},
		},
		[]diag.Code{diag.Usage},
	},
	"patch": {
		[]example{{Line: "builder patch audit", Does: "check every patch of every recipe"}},
		[]diag.Code{diag.Usage},
	},
	"patch show": {
		[]example{{Line: "builder patch show horovod", Does: "list the patches with their reasons and conditions"},
			{Line: "builder patch show horovod --as-diff grouped-allreduce", Does: "print one as a diff for upstream"}},
		[]diag.Code{diag.Usage, diag.Patch},
	},
	"patch audit": {
		[]example{
			{Line: "builder patch audit", Does: "check all patches on the sources in the store"},
			{Line: "builder patch audit horovod --fetch", Does: "fetch the sources of every version first"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Patch, diag.Fetch},
	},
	"debug": {
		[]example{{Line: "builder debug shell gfx90a", Does: "open a shell before the build step of a cell"}},
		[]diag.Code{diag.Usage},
	},
	"debug shell": {
		[]example{
			{Line: "builder debug shell gfx90a", Does: "open a shell before the build step of the one cell that matches"},
			{Line: "builder debug shell gfx90a patch", Does: "open a shell before the patches are applied"},
			{Line: "builder debug shell gfx90a --to /tmp/failed", Does: "keep the file system; /tmp/failed/build runs the build step again"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Patch, diag.Build, diag.Fetch, diag.NoEngine},
	},
	"bench": {
		[]example{
			{
				Line: "builder bench out/nccl-2.29.7+cuda13.0-verbs-sm_90 vendor.whl --gpus all --programs nccl_tests.whl",
				Does: "compare our library with the vendor's",
			},
			{Line: `builder bench librccl.so.1 --gpus 16 --launcher "mpirun -np 16 -H a:8,b:8" --programs rccl-tests/build --json`, Does: "measure a library on two hosts"},
		},
		[]diag.Code{diag.Usage, diag.Gate},
	},
	"profile": {
		[]example{
			{Line: "builder profile openrlhf --rocm 6.1 --ray 2.12.0", Does: "print the settings for OpenRLHF with this Ray, with reasons"},
			{Line: "builder profile openrlhf --version 0.11.2 --format json | jq '{env_vars: (.variables | map({(.name): .value}) | add)}'", Does: "write JSON for ray job submit --runtime-env-json"},
			{Line: `builder profile rccl --fabric infiniband --gpu mi300 | sed -n 's/^[A-Z]/ENV &/p'`, Does: "print ENV lines for an image"},
			{Line: "builder profile nccl --fabric roce --set-env NCCL_SOCKET_IFNAME=eth0 > nccl.env", Does: "add a variable of the site, for docker run --env-file"},
			{Line: "builder profile openrlhf --format json | jq -r '.variables[] | .name + \"=\" + .value'", Does: "print the variables as NAME=VALUE"},
		},
		[]diag.Code{diag.Usage},
	},
	"diagnose": {
		[]example{
			{Line: "builder diagnose build.log", Does: "diagnose a failed build of any tool"},
			{Line: "builder diagnose out/horovod-0.28.1+rocm5.7-tf2.13.0-cp311-gfx90a", Does: "diagnose the logs and the wheel of a cell"},
			{Line: "builder diagnose libnccl.so.2 dist/*.whl", Does: "diagnose libraries and wheels"},
			{Line: "kubectl logs job/train | builder diagnose -", Does: "diagnose a failed job, and print how its ranks were connected"},
		},
		[]diag.Code{diag.Usage},
	},
	"list": {
		[]example{
			{Line: "builder list", Does: "list recipes, axes and values"},
			{Line: "builder list --json | jq '.[].name'", Does: "print the names of the recipes"},
		},
		[]diag.Code{diag.Usage},
	},
	"store": {
		[]example{{Line: "builder store list", Does: "count the files and their bytes"}},
		[]diag.Code{diag.Usage},
	},
	"store export": {
		[]example{
			{Line: "builder store export horovod --rocm 5.7 --to horovod.tar", Does: "write all inputs for a machine without a network"},
		},
		[]diag.Code{diag.Usage, diag.Drift, diag.Fetch},
	},
	"store import": {
		[]example{{Line: "builder store import horovod.tar", Does: "read the export on that machine"}},
		[]diag.Code{diag.Usage, diag.Drift, diag.Fetch},
	},
	"store gc": {
		[]example{
			{Line: "builder store gc --dry-run", Does: "list the removals, remove nothing"},
			{Line: "builder store gc", Does: "free disk space"},
			{Line: "builder store gc --keep 50GB", Does: "shrink the store to 50 GB"},
		},
		[]diag.Code{diag.Usage, diag.NoEngine},
	},
	"store verify": {
		[]example{{Line: "builder store verify", Does: "check the digest of every file"}},
		[]diag.Code{diag.Usage, diag.Fetch},
	},
	"store list": {
		[]example{{Line: "builder store list --json", Does: "print JSON for a program"}},
		[]diag.Code{diag.Usage},
	},
	"doctor": {
		[]example{
			{Line: "builder doctor", Does: "check the engine and this host"},
			{Line: "builder doctor horovod --rocm 6.1", Does: "check the needs of the cell for ROCm 6.1 too"},
			{Line: `builder doctor --json | jq '.checks[] | select(.verdict == "fail")'`, Does: "print failures only"},
		},
		[]diag.Code{diag.Usage, diag.Fetch, diag.NoEngine},
	},
	"engine": {
		[]example{{Line: "builder engine status", Does: "check whether the engine runs"}},
		[]diag.Code{diag.Usage},
	},
	"engine up": {
		[]example{
			{Line: "builder engine up", Does: "start the engine before the first run"},
			{Line: "builder engine up --no-install", Does: "install no host packages"},
			{Line: "BUILDER_ENGINE_IMAGE=/site/engine.tar@sha256:8d3f…f3cd builder engine up", Does: "copy the engine and do not compile it; the digest has 64 digits"},
		},
		[]diag.Code{diag.Usage, diag.Fetch, diag.NoEngine},
	},
	"engine image": {
		[]example{
			{Line: "builder engine image --to engine.tar", Does: "write it for docker load -i engine.tar, and print the value of BUILDER_ENGINE_IMAGE"},
		},
		[]diag.Code{diag.Usage, diag.Fetch, diag.NoEngine},
	},
	"engine down": {
		[]example{{Line: "builder engine down", Does: "stop the engine, keep its cache"}},
		[]diag.Code{diag.Usage, diag.NoEngine},
	},
	"engine status": {
		[]example{{Line: "builder engine status --json", Does: "print JSON for a program"}},
		[]diag.Code{diag.Usage, diag.NoEngine},
	},
	"key": {
		[]example{{Line: "builder key show", Does: "print the public key that verifies this host's signatures"}},
		[]diag.Code{diag.Usage},
	},
	"key new": {
		[]example{
			{Line: "builder key new signing.pem", Does: "make a key for several hosts"},
		},
		[]diag.Code{diag.Usage},
	},
	"key sign": {
		[]example{
			{Line: "builder key sign out/CELL --trust build.pub --trust gate.pub --key signing.pem", Does: "sign what the hosts that built and gated a cell have signed"},
		},
		[]diag.Code{diag.Usage, diag.Gate},
	},
	"key show": {
		[]example{
			{Line: "builder key show > ours.pem.pub", Does: "write a file for --trust on other hosts"},
			{Line: "builder key show builder.pub", Does: "print a key with its id, to compare it with the id in a statement"},
		},
		[]diag.Code{diag.Usage},
	},
	"config": {
		[]example{{Line: "builder config show", Does: "print every setting and its origin"}},
		[]diag.Code{diag.Usage},
	},
	"config show": {
		[]example{
			{Line: "builder config show", Does: "print every setting, with file and line"},
			{Line: `builder config show --json | jq '.settings[] | select(.origin == "file")'`, Does: "print only settings from files"},
		},
		[]diag.Code{diag.Usage},
	},
	"config init": {
		[]example{
			{Line: "builder config init site", Does: "make empty directories with schemas"},
			{Line: "builder config init site horovod", Does: "copy a recipe to change"},
		},
		[]diag.Code{diag.Usage},
	},
	"config completion": {
		[]example{{Line: "builder config completion bash > /etc/bash_completion.d/builder", Does: "install completion for every user of this host"}},
		[]diag.Code{diag.Usage},
	},
	"config schema": {
		[]example{
			{Line: "builder config schema recipe > recipes/schema.json", Does: "write a schema for # yaml-language-server: $schema=schema.json"},
			{Line: "builder config schema config", Does: "print the schema of builder.yaml"},
		},
		[]diag.Code{diag.Usage},
	},
}

// exitMeanings explains each exit code in one line. docs/exit-codes.md has details.
var exitMeanings = map[diag.Code]string{
	diag.OK:          "done",
	diag.Unexpected:  "an unclassified error: a bug, or a fault of the host",
	diag.Usage:       "an error in flags, builder.yaml, recipes, patches or images",
	diag.Drift:       "a lock is incomplete or was edited, or an image differs from the catalogue",
	diag.Patch:       "a patch did not apply, or failed the audit",
	diag.Build:       "a build step failed",
	diag.Gate:        "a gate did not pass, or a signature, digest or verdict of a wheel is wrong",
	diag.Publish:     "a destination refused the upload, is unreachable, or has other bytes under the name",
	diag.Fetch:       "an input is unreachable, or its size or digest does not match",
	diag.NoEngine:    "no engine is available, or this host lacks a requirement",
	diag.Interrupted: "interrupted by SIGINT or SIGTERM",
}
