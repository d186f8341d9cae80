package host

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/machine/doctor"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// An exported image needs its registry once. Offline it comes from the store.
func TestAnExportedImageStaysInTheStore(t *testing.T) {
	server, place, held := mirrored(t)
	mirrors, err := oci.ParseMirrors([]string{place})
	must.Succeed(t, err)
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	var s Setup
	s.Keys.Home, s.Keys.Note, s.Sources.Registries = t.TempDir(), note, mirrors
	w, err := home.Open(t.Context(), s.Keys, s.NoInstall)
	must.Succeed(t, err)
	defer w.Close()
	entries := []lock.Entry{ours(held), ours(held)}
	ready := func() error {
		return checkImages(t.Context(), s, heldBy(s, doctor.EngineState{Kind: doctor.Native}), imagesOf(entries))
	}
	pull := func(without bool) ([]store.Blob, error) { return pullImages(t.Context(), s, w, entries, without) }
	s.Sources.Offline = true
	_, err = pull(false)
	check.That(t, diag.CodeOf(err) == diag.Fetch && ready() != nil, "offline without the image: %v", err)
	left, err := pull(true)
	check.That(t, err == nil && left == nil && len(notes) == 1, "left out: %v, %v, %q", left, err, notes)
	s.Sources.Offline = false
	pulled, err := pull(false)
	must.Hold(t, err == nil && len(pulled) == 2, "%v, %v", pulled, err)
	server.Close()
	s.Sources.Offline = true
	again, err := pull(false)
	err = errors.Join(err, ready())
	check.That(t, err == nil && slices.Equal(again, pulled), "from the store: %v, %v", again, err)
}
