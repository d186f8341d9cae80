package gate

import (
	"slices"
	"testing"

	"builder/internal/gates/verdict"
	"builder/test/kit/check"
)

// The ranks of allreduce-2 are started by the image's MPI, or by the gate itself. Only the
// gate launcher starts them by the wheel's horovodrun.
func TestLaunchers(t *testing.T) {
	for controller, want := range map[string][]string{"mpi": {"mpirun", "--oversubscribe"}, "mpich": {"mpirun", "fork"}, "gloo": nil} {
		s := horovodROCm()
		s.expect.Launcher = controller
		subject := s.subject(t)
		box := &recorder{box: s.box}
		subject.Box = box
		for i, g := range []Gate{allreduce2, launcherGate} {
			v := g.Check(t.Context(), subject)
			job := box.launch(t, i)
			judged(t, v, verdict.Pass, "", controller)
			if g.Name == "launcher" {
				want = []string{"horovodrun", "localhost:3"}
			}
			for _, word := range want {
				check.That(t, slices.Contains(job.Launcher, word), "%s, %s: %q lacks %q", controller, g.Name, job.Launcher, word)
			}
			check.That(t, job.Meet == (controller == "gloo" && g.Name != "launcher"), "%s, %s: %+v", controller, g.Name, job)
		}
	}
}
