package signing

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/transparency-dev/formats/witness"
	"golang.org/x/mod/sumdb/note"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/evidence/translog"
)

// NewLogKey makes the key of a transparency log, and writes both halves to new files in
// the form of signed notes. The origin is the name of the log.
func NewLogKey(path, public, origin string) (note.Signer, error) {
	private, verifier, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		return nil, err
	}
	key, err := note.NewSigner(private)
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "%q is not the name of a log", origin).
			WithHint("write a name without spaces and +, such as example.com/builds")
	}
	if err := writeNew(path, 0o600, []byte(private+"\n")); err != nil {
		return nil, err
	}
	return key, writeNew(public, 0o644, []byte(verifier+"\n"))
}

// ReadLogKey reads the private key of a log, by the rules of [ReadKey].
func ReadLogKey(path string) (note.Signer, note.Verifier, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, nil, unreadLog(path, err.Error())
	}
	defer f.Close()
	if err := private(f); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKey))
	if err != nil {
		return nil, nil, unreadLog(path, err.Error())
	}
	text := strings.TrimSpace(string(data))
	key, err := note.NewSigner(text)
	if err != nil { // no error shows the content
		return nil, nil, unreadLog(path, "it is not the private key of a log")
	}
	verifier, err := publicOf(key, text)
	return key, verifier, err
}

// publicOf returns the public half of a log's key, given its text.
func publicOf(key note.Signer, text string) (note.Verifier, error) {
	seed, err := base64.StdEncoding.DecodeString(strings.SplitN(text, "+", 5)[4])
	if err != nil {
		return nil, err
	}
	public := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey) // after the byte of the algorithm
	verifier, err := note.NewEd25519VerifierKey(key.Name(), public)
	if err != nil {
		return nil, err
	}
	return note.NewVerifier(verifier)
}

func unreadLog(path, why string) error {
	return diag.Errorf(diag.Usage, "reading the key of a log %s: %s", path, why).
		WithHint("`builder publish log --new NAME` makes a log and its key")
}

// logEntry is the part of a trust file about a transparency log.
type logEntry struct {
	Key       string `yaml:"key"`                 // file of the public key
	At        string `yaml:"at"`                  // directory or URL
	Witnesses string `yaml:"witnesses,omitempty"` // file with a policy of witnesses
}

// open returns the log of an entry in a trust file, and all its faults by their keys.
func (e logEntry) open(r *trustReader) (l *translog.Log, faults map[string]error) {
	l, faults = &translog.Log{Place: e.At}, map[string]error{}
	if e.At == "" {
		faults["log"] = errors.New("the log names no place: write at, with a directory or a URL")
	} else if !strings.Contains(e.At, "://") {
		l.Place = r.beside(e.At)
	}
	data, err := r.read(e.Key, maxKey)
	if err == nil {
		l.Key, err = note.NewVerifier(strings.TrimSpace(string(data)))
	}
	if err != nil {
		faults["log.key"] = fmt.Errorf("reading the public key of the log: %w", err)
	}
	if e.Witnesses != "" {
		data, err := r.read(e.Witnesses, maxTrustFile)
		if err == nil {
			l.Witnesses, err = witness.ParsePolicy(data)
		}
		if err != nil {
			faults["log.witnesses"] = fmt.Errorf("reading the witnesses: %w", err)
		}
	}
	return l, faults
}

// ReadWitnesses reads a policy of witnesses.
func ReadWitnesses(path string) (witness.Group, error) {
	data, err := regular.ReadFollowed(path, maxTrustFile)
	var group witness.Group
	if err == nil {
		group, err = witness.ParsePolicy(data)
	}
	if err != nil {
		return group, diag.Errorf(diag.Usage, "reading the witnesses %s: %w", path, err).
			WithHint("write lines such as: witness NAME KEY URL; quorum NAME")
	}
	return group, nil
}
