package gate

import (
	"errors"

	"builder/internal/plan/recipe"
	"builder/test/kit/wheeltest"
)

// The recorded answers of two actors of Ray 2.12.0 on a node with two simulated GPUs,
// in a separate network namespace.
const (
	rayStock    = `{"gpus": "2", "set": "ROCR_VISIBLE_DEVICES", "ids": "0 1"}`
	raySwapped  = `{"gpus": "2", "set": "CUDA_VISIBLE_DEVICES", "ids": "0 1"}`
	rayFolklore = rayStock // only removes AMDGPUAcceleratorManager from the set
)

// rayROCm returns Ray with the one changed constant.
func rayROCm() *specimen {
	const version = "2.12.0+rocm6.1.cudavis"
	s := &specimen{
		wheel: wheeltest.Wheel{
			Name:  "ray-" + version + "-cp311-cp311-manylinux2014_x86_64.whl",
			Files: []wheeltest.File{{Name: "ray/__init__.py", Text: "__version__ = '2.12.0'\n"}, {Name: "ray/ballast", Text: noise(60e3)}},
		},
		box:   container{answers: map[string]Result{"import": {}, "behaviour-visible-devices": {Output: "Ray runtime started.\n" + raySwapped + "\n"}}},
		stock: container{answers: map[string]Result{"behaviour-visible-devices": {Output: rayStock + "\n"}}},
	}
	s.expect = recipe.Expect{
		Version:  version,
		Packages: []string{"ray"},
		Import:   []string{"ray"},
		Behaviour: []recipe.Behaviour{{
			Name: "visible-devices", About: "which variable an actor with one GPU sees", Run: "python3 ask.py\n",
			Says:  map[string]string{"gpus": "2", "set": "CUDA_VISIBLE_DEVICES", "ids": "0 1"},
			Stock: map[string]string{"set": "ROCR_VISIBLE_DEVICES"},
		}},
		Gates: recipe.GateSettings{
			"size": "40KB..150KB",
		},
	}
	return s
}

// badBehaviour lists artifacts with another behaviour than promised, and scripts
// without an answer.
func badBehaviour() []bad {
	const (
		asked     = "behaviour-visible-devices"
		reach     = "does not reach the deciding code"
		lookAgain = "not-measured never counts as a pass"
	)
	row := func(what, output string, exit int, blind bool, says string) bad {
		do := reach
		if blind {
			do = lookAgain
		}
		return bad{what: what, of: rayROCm, gate: "behaviour", blind: blind, says: says, do: do, change: func(s *specimen) {
			s.box.answers[asked] = Result{Exit: exit, Output: output}
		}}
	}
	release := func(what, output string, exit int, says string) bad {
		return refused(what, rayROCm, func(s *specimen) {
			s.stock.answers[asked] = Result{Exit: exit, Output: output}
		}, "behaviour", says, lookAgain).unmeasured()
	}
	const wrong = "set is ROCR_VISIBLE_DEVICES, expected CUDA_VISIBLE_DEVICES"
	return []bad{
		row("Ray with AMD's class left out of the set, which changes nothing", rayFolklore, 0, false, wrong+"; it reports gpus=2 ids=0 1 set=ROCR_VISIBLE_DEVICES; upstream's release reports gpus=2 ids=0 1 set=ROCR_VISIBLE_DEVICES"),
		row("Ray that takes AMD's host for NVIDIA's, and counts no GPU", `{"gpus": "0", "set": "CUDA_VISIBLE_DEVICES", "ids": "0 1"}`, 0, false, "gpus is 0, expected 2"),
		row("Ray that sets two variables", `{"gpus": "2", "set": "CUDA_VISIBLE_DEVICES,HIP_VISIBLE_DEVICES", "ids": "0 0 1 1"}`, 0, false, "ids is 0 0 1 1, expected 0 1, set is CUDA_VISIBLE_DEVICES,HIP_VISIBLE_DEVICES"),
		row("an answer without a promised key", `{"set": "CUDA_VISIBLE_DEVICES", "ids": "0 1"}`, 0, false, "gpus is missing, expected 2"),
		row("the script of a behaviour ends with an error after its answer", raySwapped+"\nConnectionError: the head is gone\n", 1, true, "exit 1 and no answer: ConnectionError: the head is gone"),
		row("the script of a behaviour prints nothing", "", 0, true, "exit 0 and no answer: no output"),
		row("an answer with a value other than a string", `{"gpus": 2}`, 0, true, `not a flat JSON object of strings: {"gpus": 2}`),
		release("a script that cannot tell the patch: upstream's release passes", raySwapped, 0, "upstream's release differs from its record: set is CUDA_VISIBLE_DEVICES, recorded ROCR_VISIBLE_DEVICES"),
		release("a script that ends with an error in upstream's release", "RuntimeError: x\n", 1, "asking upstream's release: the script ended with exit 1"),
		refused("upstream's release cannot be installed", rayROCm, func(s *specimen) { s.stock.failure = errors.New("no space") },
			"behaviour", "asking upstream's release: no space", lookAgain).unmeasured(),
	}
}
