package host

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/machine/doctor"
	"builder/test/kit/check"
)

func TestLackingIsNoEngine(t *testing.T) {
	r := doctor.Report{Schema: doctor.Schema, Checks: []doctor.Result{{Name: "rdma", For: doctor.Fabric, Finding: doctor.Finding{Verdict: doctor.Warn}}}}
	err := lacking(r)
	check.That(t, err == nil, "a warning is an error: %v", err)
	r.Checks[0].Verdict = doctor.Fail
	err = lacking(r)
	check.That(t, err == nil, "what is not needed is an error: %v", err)
	r.Checks[0].Needed = true
	check.Same(t, "the class", diag.NoEngine, diag.CodeOf(lacking(r)))
}

// Without its image a daemon is as good as none if the registry is silent and the host
// supports the native engine.
func TestDaemonWithoutReachableImage(t *testing.T) {
	here := httptest.NewServer(http.NotFoundHandler())
	defer here.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	image := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") + "/engine:v1" }
	for name, c := range map[string]struct {
		state       doctor.EngineState
		unsupported error
		want        doctor.EngineKind
	}{
		"registry silent":           {doctor.EngineState{Image: image(gone)}, nil, doctor.Native},
		"registry answers":          {doctor.EngineState{Image: image(here)}, nil, doctor.Container},
		"image present":             {doctor.EngineState{Image: image(gone), Holds: true}, nil, doctor.Container},
		"no native engine possible": {doctor.EngineState{Image: image(gone)}, errors.New("not root"), doctor.Container},
	} {
		c.state.Kind, c.state.Program = doctor.Container, "podman"
		got, err := reachable(t.Context(), c.state, c.unsupported)
		check.That(t, err == nil && got.Kind == c.want && (got.Instead == "") == (c.want == doctor.Container),
			"%s: %+v, %v", name, got, err)
	}
}
