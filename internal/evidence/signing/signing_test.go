package signing

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

const statement = `{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"a","digest":{"sha256":"` +
	`e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}],"predicateType":"x","predicate":{}}`

func newTestKey(t *testing.T) Key {
	t.Helper()
	return must.Get(NewKey())(t)
}

func signed(t *testing.T, k Key, text string) []byte {
	t.Helper()
	return must.Get(Sign(k, []byte(text)))(t)
}

func TestSignAndOpen(t *testing.T) {
	k := newTestKey(t)
	data := signed(t, k, statement)
	var b struct {
		MediaType            string
		VerificationMaterial struct{ PublicKey struct{ Hint string } }
		DsseEnvelope         struct {
			Payload, PayloadType string
			Signatures           []struct{ Sig string }
		}
	}
	must.Succeed(t, json.Unmarshal(data, &b))
	payload, err := base64.StdEncoding.DecodeString(b.DsseEnvelope.Payload)
	if err != nil || string(payload) != statement || b.DsseEnvelope.PayloadType != "application/vnd.in-toto+json" ||
		b.MediaType != "application/vnd.dev.sigstore.bundle.v0.3+json" || len(b.DsseEnvelope.Signatures) != 1 ||
		b.VerificationMaterial.PublicKey.Hint != k.Public().ID {
		t.Errorf("%s, %v", data, err)
	}
	got, err := Trust{Keys: []PublicKey{k.Public()}}.Open(data)
	check.That(t, err == nil && string(got.Statement) == statement && got.KeyID == k.Public().ID, "%+v, %v", got, err)
}

// Open must refuse each of these, with its reason.
func TestOpenRefuses(t *testing.T) {
	k, other := newTestKey(t), newTestKey(t)
	good := signed(t, k, statement)
	changed := func(was, is string) []byte {
		data := bytes.Replace(good, []byte(was), []byte(is), 1)
		must.Hold(t, !bytes.Equal(data, good), "%q is not in %s", was, good)
		return data
	}
	payload := base64.StdEncoding.EncodeToString([]byte(statement))
	forged := base64.StdEncoding.EncodeToString([]byte(strings.Replace(statement, `"x"`, `"y"`, 1)))
	impostor := other // claims the id of the trusted key
	impostor.public.ID = k.public.ID
	trust := Trust{Keys: []PublicKey{k.Public()}}
	for name, c := range map[string]struct {
		trust Trust
		data  []byte
		says  string
	}{
		"another payload":        {trust, changed(payload, forged), "the signature is invalid"},
		"another payload type":   {trust, changed("vnd.in-toto+json", "vnd.other+json"), "no in-toto statement"},
		"another signature":      {trust, changed(`"sig":"`, `"sig":"AAAA`), "the signature is invalid"},
		"no signature":           {trust, []byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"` + k.Public().ID + `"}},"dsseEnvelope":{"payload":"` + payload + `","payloadType":"application/vnd.in-toto+json"}}`), "the signature is invalid"},
		"a foreign key":          {Trust{Keys: []PublicKey{other.Public()}}, good, "untrusted key signed it: " + k.Public().ID},
		"no trusted keys":        {Trust{}, good, "untrusted key signed it"},
		"an impostor":            {trust, signed(t, impostor, statement), "the signature is invalid"},
		"a key without a name":   {trust, changed(`"hint":"`+k.Public().ID+`"`, `"hint":""`), "names no key"},
		"cut":                    {trust, good[:len(good)/2], "not a Sigstore bundle"},
		"empty":                  {trust, nil, "not a Sigstore bundle"},
		"a list":                 {trust, []byte("[]"), "not a Sigstore bundle"},
		"a bundle of the future": {trust, changed("bundle.v0.3+json", "bundle.v9.9+json"), "not a Sigstore bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.trust.Open(c.data)
			check.That(t, err != nil && strings.Contains(err.Error(), c.says) && got.Statement == nil,
				"%q, %v; want %q", got.Statement, err, c.says)
		})
	}
}

func TestKeysAreFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key.pem")
	k := newTestKey(t)
	must.Succeed(t, k.Write(path), k.Public().Write(path+".pub"))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	again, err := ReadKey(path)
	check.That(t, err == nil && again.Public().ID == k.Public().ID, "%+v, %v", again.Public(), err)
	public, err := ReadPublicKey(path + ".pub")
	check.That(t, err == nil && public.ID == k.Public().ID, "%+v, %v", public, err)
	// Write never replaces a key.
	err = newTestKey(t).Write(path)
	check.That(t, errors.Is(err, fs.ErrExist), "replaced: %v", err)
	left, err := os.ReadDir(dir)
	check.That(t, err == nil && len(left) == 2, "%v, %v", left, err)
}

func TestReadKeyRefuses(t *testing.T) {
	k := newTestKey(t)
	path := filepath.Join(t.TempDir(), "key")
	must.Succeed(t, k.Write(path))
	private, err := os.ReadFile(path)
	must.Succeed(t, err)
	big := must.Get(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)
	der := must.Get(x509.MarshalPKCS8PrivateKey(big))(t)
	for name, c := range map[string]struct{ text, says string }{
		"empty":         {"", "not one PEM block"},
		"a password":    {"hunter2", "not one PEM block"},
		"two":           {string(private) + string(private), "not one PEM block"},
		"public":        {string(k.Public().PEM()), "it is a public key"},
		"another curve": {string(pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der})), "P-256"},
		"damaged":       {string(pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: []byte("x")})), "P-256"},
		"a last day":    {string(pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der, Headers: map[string]string{"Not-After": "2027-11-21"}})), "it has a header, such as a last day, and keys have none"},
	} {
		t.Run(name, func(t *testing.T) {
			mode := fs.FileMode(0o600)
			if name == "public" {
				mode = 0o644 // a public key is no secret
			}
			must.Succeed(t, os.WriteFile(path, []byte(c.text), mode), os.Chmod(path, mode))
			_, err := ReadKey(path)
			check.That(t, err != nil && strings.Contains(err.Error(), c.says) && diag.CodeOf(err) == diag.Usage,
				"got %v, want %q", err, c.says)
			check.That(t, !strings.Contains(err.Error(), "hunter2"), "the error shows what is in the file")
		})
	}
	_, err = ReadPublicKey(path + "nowhere")
	check.That(t, errors.Is(err, fs.ErrNotExist), "%v", err)
	must.Succeed(t, os.WriteFile(path, private, 0o600))
	_, err = ReadPublicKey(path)
	check.Fails(t, err, "holds a private key", "a private key was read as a public one")
}

func FuzzOpen(f *testing.F) {
	k := must.Get(NewKey())(f)
	data := must.Get(Sign(k, []byte(statement)))(f)
	trust := Trust{Keys: []PublicKey{k.Public()}}
	// The input is an edit of a valid bundle. With whole bundles as input, the fuzzer
	// would spend its time on minimizing them.
	f.Add(uint16(bytes.Index(data, []byte(`"payload":`))+12), []byte("f"), uint16(0))
	f.Add(uint16(14), []byte("x"), uint16(1))
	f.Fuzz(func(t *testing.T, at uint16, change []byte, cut uint16) {
		whole := data
		data := bytes.Clone(whole)
		copy(data[int(at)%len(data):], change)
		data = data[:len(data)-int(cut)%len(data)]
		if bytes.Equal(data, whole) {
			return // verifying is slow, and other tests cover it
		}
		got, err := trust.Open(data)
		check.That(t, err != nil || string(got.Statement) == statement, "a statement that nobody signed: %q", got.Statement)
	})
}

// A key that others can access must not sign.
func TestAKeyThatIsNotPrivateIsRefused(t *testing.T) {
	for what, c := range map[string]struct {
		do         func(path string) error
		says, hint string
	}{
		"others can read the key":    {func(path string) error { return os.Chmod(path, 0o644) }, "its mode is 0644, other users can read or change it", "chmod 600"},
		"the group can read the key": {func(path string) error { return os.Chmod(path, 0o640) }, "its mode is 0640", "chmod 600"},
		"others can write the key":   {func(path string) error { return os.Chmod(path, 0o666) }, "its mode is 0666", "chmod 600"},
		"another user's key":         {func(path string) error { return os.Chown(path, 65533, -1) }, "it belongs to user 65533, and you are user", "sign as its owner"},
		"a link at its path":         {func(path string) error { return errors.Join(os.Rename(path, path+"x"), os.Symlink(path+"x", path)) }, "a symbolic link", ""},
		"a pipe at its path":         {func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, "a named pipe", ""},
		"a directory at its path":    {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "a directory", ""},
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key.pem")
			must.Succeed(t, newTestKey(t).Write(path))
			if err := c.do(path); errors.Is(err, fs.ErrPermission) {
				t.Skip("only root gives files away")
			} else if err != nil {
				t.Fatal(err)
			}
			_, err := ReadKey(path)
			check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), c.says), "%v", err)
			all := diag.All(err)
			check.That(t, c.hint == "" || (len(all) != 0 && strings.Contains(all[0].Hint, c.hint)), "the hint is not %q: %v", c.hint, all)
		})
	}
}

// Reading a named pipe in place of a trusted key must not block.
func TestAPipeIsNoTrustedKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem.pub")
	must.Succeed(t, syscall.Mkfifo(path, 0o600))
	_, err := ReadPublicKey(path)
	check.Fails(t, err, "a named pipe")
}
