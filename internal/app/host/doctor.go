package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"builder/internal/app/home"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/build/native"
	"builder/internal/input/pypi"
	"builder/internal/machine/doctor"
	"builder/internal/machine/host"
	"builder/internal/plan/lock"
	"builder/pipelines"
)

// Examine checks whether this host can build. With a recipe it also checks the needs of
// the chosen cell. The error names the failed checks.
func Examine(ctx context.Context, s Setup, of plan.Selection) (doctor.Report, error) {
	work, images, err := workOf(ctx, s, of)
	if err != nil {
		return doctor.Report{}, err
	}
	r := doctor.Examine(ctx, host.This(), work)
	r.Builder = s.Version
	err = checkImages(ctx, s, heldBy(s, work.Engine), images)
	if names := r.Lacking(); len(names) > 0 {
		lacks := diag.Errorf(diag.NoEngine, "this host cannot do the work: %s", strings.Join(names, ", ")).
			WithHint("see the findings and remedies above")
		err = errors.Join(lacks, err)
	}
	return r, err
}

// workOf returns the work to examine the host for, and the images to pull for it.
func workOf(ctx context.Context, s Setup, of plan.Selection) (doctor.Work, []lock.ImagePin, error) {
	w := doctor.Work{Home: s.Keys.Home, Engine: engineState(ctx, s)}
	if w.Home == home.Nowhere {
		w.Home = ""
	}
	if of.Recipe == nil {
		return w, nil, nil
	}
	needs, images, err := forecast(ctx, s, of)
	if err != nil {
		return w, nil, err
	}
	w.Recipe = needs
	if len((pypi.Programs{Home: s.Keys.Home, Store: peek(s.Keys.Home)}).Missing()) > 0 && pypi.FindPip(ctx) == nil {
		w.Engine.Programs = append(slices.Clone(w.Engine.Programs), host.Needed{Name: "pip3", Package: "python3-pip"})
	}
	return w, images, nil
}

// engineTime limits the query for an engine's version.
const engineTime = 20 * time.Second

// engineState finds the engine that a run would use. It starts none.
func engineState(ctx context.Context, s Setup) doctor.EngineState {
	own := NativeEngine(s).Look()
	state := doctor.EngineState{
		Kind: doctor.Native, Wanted: native.Version, NoInstall: s.NoInstall, From: s.Engines.Image.Place.String(),
		Address: own.Address, Built: own.Built, Running: own.Running, Current: own.Current,
	}
	if s.Engines.Choice.Address != "" {
		state.Kind, state.Address = doctor.Named, s.Engines.Choice.Address
	} else if d, found := s.Engines.Daemon(); found && !s.Engines.Choice.NativeOnly {
		state.Kind, state.Program = doctor.Container, string(d)
		state.Image, state.Holds = imageIn(ctx, d)
	}
	if state.Kind == doctor.Native {
		state.Programs = native.Needs
	}
	if own.Built && (state.Kind == doctor.Named || state.Kind == doctor.Native && state.Current) {
		state.Version = func(ctx context.Context, address string) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, engineTime)
			defer cancel()
			return pipelines.Version(ctx, address, own.CLI)
		}
	}
	return state
}
