package gate

import (
	"io"
	"testing"

	"builder/internal/files/wheel"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestALibraryIsUnpackedOnce(t *testing.T) {
	s := horovodROCm()
	subject := s.subject(t)
	w, err := wheel.Open(subject.Artifact)
	must.Succeed(t, err)
	defer w.Close()
	open := func(u *Unpacked, name string) (member io.ReaderAt, err error) {
		err = u.read(t.Context(), w, name, func(r io.ReaderAt) error {
			member = r
			_, err := r.ReadAt(make([]byte, 4), 0)
			return err
		})
		return member, err
	}
	first, err1 := open(subject.Unpacked, s.extension)
	kept := subject.Unpacked.members[s.extension]
	_, err2 := open(subject.Unpacked, s.extension)
	check.That(t, err1 == nil && err2 == nil && kept != nil && kept == subject.Unpacked.members[s.extension],
		"it was unpacked twice: %v, %v", err1, err2)
	_, err = open(subject.Unpacked, "horovod/none.so")
	check.That(t, err != nil, "a file that is not there can be read")
	err = subject.Unpacked.Close()
	check.That(t, err == nil, "%v", err)
	_, err = first.ReadAt(make([]byte, 4), 0)
	check.That(t, err != nil, "it is open after Close")
	third, err := open(nil, s.extension)
	check.That(t, err == nil, "%v", err)
	_, err = third.ReadAt(make([]byte, 4), 0)
	check.That(t, err != nil, "nothing keeps it, and it is open after its use")
}
