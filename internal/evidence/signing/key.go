package signing

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// A Key signs with ECDSA on P-256, which every Sigstore client supports.
type Key struct {
	private  *ecdsa.PrivateKey
	public   PublicKey
	services sign.BundleOptions // that it asks for each signature
}

// A PublicKey verifies signatures, with its own key or with certificates for an identity.
type PublicKey struct {
	ID string // base64 of the sha256 of its DER form, as in Sigstore bundles; or subject and issuer

	key             *ecdsa.PublicKey // nil for an identity
	issuer, subject string           // of the certificates of an identity
	roots           *root.TrustedRoot
}

const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
	maxKey       = 64 << 10 // bytes of a key file
)

// NewKey creates a key.
func NewKey() (Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("making a key: %w", err)
	}
	return newKey(private)
}

func newKey(private *ecdsa.PrivateKey) (Key, error) {
	public, err := newPublicKey(&private.PublicKey)
	return Key{private: private, public: public}, err
}

func newPublicKey(key *ecdsa.PublicKey) (PublicKey, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return PublicKey{}, fmt.Errorf("encoding a public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return PublicKey{ID: base64.StdEncoding.EncodeToString(sum[:]), key: key}, nil
}

// Public returns the public key for verifying signatures.
func (k Key) Public() PublicKey { return k.public }

// Write writes the key to a new file readable only by its owner. It never replaces a
// file.
func (k Key) Write(path string) error {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return fmt.Errorf("encoding a key: %w", err)
	}
	return writeNew(path, 0o600, pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der}))
}

// Write writes the public key to a new file. It never replaces a file.
func (p PublicKey) Write(path string) error { return writeNew(path, 0o644, p.PEM()) }

// PEM returns the public key in PEM form.
func (p PublicKey) PEM() []byte {
	der, err := x509.MarshalPKIXPublicKey(p.key)
	if err != nil {
		panic(fmt.Sprintf("signing: encoding a P-256 key: %v", err)) // cannot happen: reading the key checked its point
	}
	return pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: der})
}

// writeNew creates a file atomically. It returns an error if the file exists.
func writeNew(path string, mode fs.FileMode, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".key-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Link(tmp.Name(), path) // a rename would replace an existing file
}

// ReadKey reads a private key in PKCS #8 for signing. It refuses a key that others can
// read or write and a key of another user, because its signatures would prove nothing.
func ReadKey(path string) (Key, error) { return readKey(path, private) }

func readKey(path string, check func(*os.File) error) (Key, error) {
	f, err := regular.Open(path)
	if err != nil {
		return Key{}, unread(err)
	}
	defer f.Close()
	data, err := regular.All(f, maxKey)
	if err != nil {
		return Key{}, unread(err)
	}
	if block, _ := pem.Decode(data); block != nil && block.Type == publicBlock { // others may read it
		return Key{}, keyFault(path, "it is a public key").WithHint("name the private key: `builder key new FILE` made FILE and FILE.pub")
	}
	block, err := readPEM(path, data, privateBlock)
	if err != nil {
		return Key{}, err
	}
	parsed, _ := x509.ParsePKCS8PrivateKey(block)
	own, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || own.Curve != elliptic.P256() {
		return Key{}, keyFault(path, "it is not an ECDSA key on P-256")
	}
	if err := check(f); err != nil { // last: nobody should change the mode of a file that is no key
		return Key{}, err
	}
	return newKey(own)
}

// private returns an error unless only its owner, the current user, can access the
// file.
func private(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return unread(err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return diag.Errorf(diag.Usage, "reading the key %s: its mode is %04o, other users can read or change it", f.Name(), mode).
			WithHint("run chmod 600 %s; if another user may have read it, make a new key: builder key new FILE", f.Name())
	}
	if of, ok := info.Sys().(*syscall.Stat_t); ok && int(of.Uid) != os.Geteuid() {
		return diag.Errorf(diag.Usage, "reading the key %s: it belongs to user %d, and you are user %d", f.Name(), of.Uid, os.Geteuid()).
			WithHint("sign as its owner, or use a key of your own: builder key new FILE makes one")
	}
	return nil
}

func unread(err error) error {
	e := diag.Errorf(diag.Usage, "reading a key: %w", err)
	if errors.Is(err, fs.ErrNotExist) {
		return e.WithHint("`builder key new FILE` makes a key and FILE.pub; `builder key show` prints the public key of a host")
	}
	return e
}

// ReadPublicKey reads a public key. It refuses a private key, so that a private key is
// not distributed by mistake.
func ReadPublicKey(path string) (PublicKey, error) {
	data, err := regular.ReadFollowed(path, maxKey)
	if err != nil {
		return PublicKey{}, unread(err)
	}
	block, err := readPEM(path, data, publicBlock)
	if err != nil {
		return PublicKey{}, err
	}
	parsed, _ := x509.ParsePKIXPublicKey(block)
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return PublicKey{}, keyFault(path, "it is not an ECDSA key on P-256")
	}
	return newPublicKey(key)
}

// readPEM returns the only block of a file. It refuses headers, which could limit the key:
// builder knows no limit of a key. Its errors never contain the key.
func readPEM(path string, data []byte, kind string) (der []byte, err error) {
	block, rest := pem.Decode(data)
	switch {
	case block == nil || len(strings.TrimSpace(string(rest))) > 0:
		return nil, keyFault(path, "it is not one PEM block")
	case kind == privateBlock && strings.HasSuffix(block.Type, " "+privateBlock):
		return nil, keyFault(path, fmt.Sprintf("it holds a block %q, and PKCS #8 is expected", block.Type)).
			WithHint("openssl pkcs8 -topk8 -nocrypt -in %s -out FILE converts a key of openssl; builder key new FILE makes a new one", path)
	case block.Type != kind:
		return nil, keyFault(path, fmt.Sprintf("it holds a %s, expected a %s", strings.ToLower(block.Type), strings.ToLower(kind)))
	case len(block.Headers) > 0:
		return nil, keyFault(path, "it has a header, such as a last day, and keys have none")
	}
	return block.Bytes, nil
}

func keyFault(path, what string) *diag.Error {
	return diag.Errorf(diag.Usage, "reading the key %s: %s", path, what).
		WithHint("builder key new FILE makes FILE and FILE.pub")
}

// keypair adapts a key to Sigstore's signer.
type keypair struct{ Key }

var _ sign.Keypair = keypair{}

func (k keypair) GetHashAlgorithm() protocommon.HashAlgorithm {
	return protocommon.HashAlgorithm_SHA2_256
}

func (k keypair) GetSigningAlgorithm() protocommon.PublicKeyDetails {
	return protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256
}

func (k keypair) GetHint() []byte                  { return []byte(k.public.ID) }
func (k keypair) GetKeyAlgorithm() string          { return "ECDSA" }
func (k keypair) GetPublicKey() crypto.PublicKey   { return k.public.key }
func (k keypair) GetPublicKeyPem() (string, error) { return string(k.public.PEM()), nil }

// SignData returns the signature and the signed digest.
func (k keypair) SignData(_ context.Context, data []byte) (signature, digest []byte, err error) {
	sum := sha256.Sum256(data)
	signature, err = ecdsa.SignASN1(rand.Reader, k.private, sum[:])
	return signature, sum[:], err
}
