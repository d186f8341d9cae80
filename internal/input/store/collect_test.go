package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// used sets the last use of b to a time in the past.
func used(t *testing.T, s *Store, b Blob, ago time.Duration) {
	t.Helper()
	at := time.Now().Add(-ago)
	must.Succeed(t, os.Chtimes(slotOf(s.dir, b.SHA256).record, at, at))
}

func TestCollect(t *testing.T) {
	s := fresh(t)
	content := strings.Repeat("x", 999)
	old, recent, last := put(t, s, "old", content+"1"), put(t, s, "recent", content+"2"), put(t, s, "last", content+"3")
	used(t, s, old, 2*time.Hour)
	used(t, s, recent, time.Hour)
	used(t, s, last, time.Minute)
	half := strings.Repeat("0", 64)
	long := time.Now().Add(-3 * time.Hour)
	must.Succeed(t, os.Chtimes(write(t, filepath.Join(s.dir, partials, half), []byte("1234567890")), long, long))
	for _, c := range []struct {
		most int64
		gone []string
	}{
		{5000, nil},
		{3009, []string{half}},
		{2999, []string{half, old.SHA256}},
		{1000, []string{half, old.SHA256, recent.SHA256}},
		{0, []string{half, old.SHA256, recent.SHA256, last.SHA256}},
	} {
		got := must.Get(s.Collect(c.most, true))(t)
		names := digestsOf(got)
		check.That(t, slices.Equal(names, c.gone) && got.Before == 3010, "keeping %d: %v", c.most, got)
	}
	_, ok := s.Path(old)
	must.Hold(t, ok, "a dry run removed something")
	if _, err := s.Use(old); err != nil { // now the most recently used
		t.Fatal(err)
	}
	got, err := s.Collect(2000, false)
	must.Hold(t, err == nil && got.After == 2000 && slices.Equal(digestsOf(got), []string{half, recent.SHA256}), "%v, %v", got, err)
	_, there := s.Path(old)
	_, gone := s.Path(recent)
	check.That(t, there && !gone, "old: %v, recent: %v", there, gone)
}

func digestsOf(c Collected) []string {
	var all []string
	for _, f := range c.Files {
		all = append(all, f.SHA256)
	}
	return all
}

func TestCollectLeavesWhatSomebodyIsAt(t *testing.T) {
	s := fresh(t)
	b := put(t, s, "a", "content")
	unlock := must.Get(Lock(t.Context(), filepath.Join(s.dir, locks, b.SHA256), nil))(t)
	defer unlock()
	got, err := s.Collect(0, false)
	check.That(t, err == nil && len(got.Files) == 0 && got.After == b.Size, "%v, %v", got, err)
	_, ok := s.Path(b)
	check.That(t, ok, "it went")
}

func TestCollectWaitsForUsers(t *testing.T) {
	s := fresh(t)
	one, err1 := s.Hold(t.Context(), nil)
	two, err2 := s.Hold(t.Context(), nil) // several processes may hold the store
	must.Succeed(t, err1, err2)
	one()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Alone(ctx, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("a user is there: %v", err)
	}
	two()
	alone, err := s.Alone(t.Context(), nil)
	must.Succeed(t, err)
	ctx, cancel = context.WithCancel(t.Context())
	_, err = s.Hold(ctx, cancel)
	check.That(t, errors.Is(err, context.Canceled), "a collection is under way: %v", err)
	alone()
}

func TestUnstage(t *testing.T) {
	s := fresh(t)
	scratch := t.TempDir()
	b := put(t, s, "a", "content")
	for _, name := range []string{"wheels-1", "git-clone", "shell-old", "shell-young"} {
		must.Succeed(t, s.Stage(filepath.Join(scratch, name), []Blob{b}))
	}
	long := time.Now().Add(-25 * time.Hour)
	must.Succeed(t, os.Chtimes(filepath.Join(scratch, "shell-old"), long, long))
	for _, dry := range []bool{true, false} {
		got, err := Unstage(scratch, dry)
		check.That(t, err == nil && slices.Equal(got, []string{"shell-old", "wheels-1"}), "dry %v: %v, %v", dry, got, err)
	}
	left := names(t, scratch)
	check.That(t, slices.Equal(left, []string{"git-clone", "shell-young"}), "left: %v", left)
	got, err := Unstage(filepath.Join(scratch, "absent"), false)
	check.That(t, err == nil && len(got) == 0, "without scratch: %v, %v", got, err)
}

// A verification does not count as a use.
func TestVerifyIsNoUse(t *testing.T) {
	s := fresh(t)
	b := put(t, s, "a", "content")
	used(t, s, b, 100*time.Hour)
	must.Succeed(t, s.Verify(b))
	all, err := s.Survey()
	check.That(t, err == nil && time.Since(all[0].Used) >= 99*time.Hour, "%v, %v", all, err)
	again := put(t, s, "a", "content")
	must.Hold(t, again == b, "%v", again)
	all, err = s.Survey()
	check.That(t, err == nil && time.Since(all[0].Used) <= time.Hour, "what came again is old: %v, %v", all, err)
}

func TestSurvey(t *testing.T) {
	s := fresh(t)
	b, half := put(t, s, "x", "fetched"), strings.Repeat("0", 64)
	write(t, filepath.Join(s.dir, partials, half), []byte("begun"))
	write(t, filepath.Join(s.dir, contents, "stray"), nil)
	all, err := s.Survey()
	if err != nil || len(all) != 2 || all[0].SHA256 != b.SHA256 || all[0].Partial || all[1].SHA256 != half || !all[1].Partial {
		t.Errorf("%v, %v", all, err)
	}
}
