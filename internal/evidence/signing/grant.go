package signing

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/gates/gate"
)

// A Role is a kind of statement that a key may sign.
type Role string

// The roles.
const (
	Maker     Role = "builder"   // how an artifact was made, and what is in it
	GateHost  Role = "gates"     // verdicts of gates
	Rebuilder Role = "rebuilder" // the verdict of a second build
)

var roles = []Role{Maker, GateHost, Rebuilder}

// A Grant limits what the signatures of a trusted key count for. An empty list limits
// nothing, and neither does an age of 0.
type Grant struct {
	File     string // the file that limits the key, "" for none
	Roles    []Role
	Recipes  []string
	Channels []string
	Gates    []string
	Age      time.Duration // of a build
}

// May reports whether the key may sign statements of a role.
func (g Grant) May(r Role) bool { return allows(g.Roles, r) }

// allows reports whether a list contains an item, or limits nothing.
func allows[T comparable](list []T, item T) bool {
	return len(list) == 0 || slices.Contains(list, item)
}

// Judges reports whether the key may sign verdicts of a gate.
func (g Grant) Judges(gate string) bool { return allows(g.Gates, gate) }

// Problem returns the reason why a build of a recipe does not count in a channel at a
// time, or "".
func (g Grant) Problem(recipe, channel string, built, now time.Time) string {
	switch {
	case !allows(g.Recipes, recipe):
		return fmt.Sprintf("it may sign for %s, and not for the recipe %s", strings.Join(g.Recipes, ", "), recipe)
	case !allows(g.Channels, channel):
		return fmt.Sprintf("it may sign for the channel %s, and not for %s", strings.Join(g.Channels, ", "), channel)
	case g.Age > 0 && now.Sub(built) > g.Age:
		return fmt.Sprintf("a build counts for %d days, and this one is of %s", int(g.Age.Hours()/24), built.Format(time.DateOnly))
	}
	return ""
}

// trustFile is a file of trusted keys and their limits.
type trustFile struct {
	Keys []struct {
		Key      string   `yaml:"key,omitempty"` // file of a public key; a relative path begins at this file
		Issuer   string   `yaml:"issuer,omitempty"`
		Subject  string   `yaml:"subject,omitempty"` // of certificates that the issuer's tokens get
		Roots    string   `yaml:"roots,omitempty"`   // file of the CAs of these certificates
		Roles    []string `yaml:"roles,omitempty"`
		Recipes  []string `yaml:"recipes,omitempty"`
		Channels []string `yaml:"channels,omitempty"`
		Gates    []string `yaml:"gates,omitempty"`
		Days     *int     `yaml:"days,omitempty"` // age of the oldest build that counts
	} `yaml:"keys"`
	Rebuilders map[string]int `yaml:"rebuilders,omitempty"` // by channel, see [Trust]
	Timestamps []string       `yaml:"timestamps,omitempty"` // files of certificates, see [Trust]
}

// maxTrustFile limits the size of a trust file in bytes.
const maxTrustFile = 1 << 20

// ReadTrusted reads a public key, or a trust file, whose name ends in .yaml or .yml. The
// time of the result is not set.
func ReadTrusted(path string) (Trust, error) {
	if end := filepath.Ext(path); end == ".yaml" || end == ".yml" {
		return (&trustReader{path: path}).trust()
	}
	k, err := ReadPublicKey(path)
	return Trust{Keys: []PublicKey{k}}, err
}

// trust reads the trust file and all files that it names.
func (r *trustReader) trust() (Trust, error) {
	data, err := r.read(filepath.Base(r.path), maxTrustFile)
	if err != nil {
		return Trust{}, diag.Errorf(diag.Usage, "reading the trust file %s: %w", r.path, err)
	}
	if bytes.Contains(data, []byte("-----BEGIN")) { // an error about YAML would show a part of it
		return Trust{}, diag.Errorf(diag.Usage, "reading the trust file %s: it holds a key, and not the names of files with keys", r.path)
	}
	return r.parse(data)
}

// channels are the channels of publications.
var channels = []string{"candidate", "stable"}

// parse reads all keys and reports all faults.
func (r *trustReader) parse(data []byte) (Trust, error) {
	path := r.path
	var file trustFile
	index, err := decode.Placed(path, data, &file)
	if err != nil {
		return Trust{}, err
	}
	var all []PublicKey
	var errs []error
	fault := func(i int, at, format string, args ...any) {
		errs = append(errs, diag.At(index.At("keys[%d]%s", i, at), format, args...))
	}
	for i, entry := range file.Keys {
		k, at, err := r.signer(entry.Key, entry.Issuer, entry.Subject, entry.Roots)
		if err != nil {
			fault(i, at, "%w", err)
		} else if slices.ContainsFunc(all, func(x PublicKey) bool { return x.ID == k.ID }) {
			fault(i, ".key", "the key %s is named twice", k.ID)
		}
		if entry.Days != nil && *entry.Days < 1 {
			fault(i, ".days", "days is %d, and a build has to count for one day at least; leave days out for no limit", *entry.Days)
		}
		for j, name := range entry.Channels {
			if !slices.Contains(channels, name) {
				fault(i, fmt.Sprintf(".channels[%d]", j), "%q is not a channel: known are %s", name, strings.Join(channels, " and "))
			}
		}
		k.Grant = Grant{File: path, Recipes: entry.Recipes, Channels: entry.Channels, Gates: entry.Gates}
		if entry.Days != nil {
			k.Grant.Age = time.Duration(*entry.Days) * 24 * time.Hour
		}
		for j, name := range entry.Gates {
			if known := gate.Names(); !slices.Contains(known, name) {
				at := index.At("keys[%d].gates[%d]", i, j)
				errs = append(errs, diag.At(at, "%q is not a gate", name).WithHint("%s", diag.DidYouMean(name, known)))
			}
		}
		for j, r := range entry.Roles {
			if !slices.Contains(roles, Role(r)) {
				fault(i, fmt.Sprintf(".roles[%d]", j), "%q is no role: known are builder, gates and rebuilder", r)
			}
			k.Grant.Roles = append(k.Grant.Roles, Role(r))
		}
		if err == nil {
			all = append(all, k)
		}
	}
	if len(file.Keys) == 0 {
		errs = append(errs, diag.At(diag.Pos{File: path}, "it names no key"))
	}
	rebuilders := 0
	for _, k := range all {
		if k.Grant.May(Rebuilder) {
			rebuilders++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Rebuilders)) {
		at := diag.Pos{File: path}
		switch n := file.Rebuilders[name]; {
		case !slices.Contains(channels, name):
			errs = append(errs, diag.At(at, "rebuilders: %q is not a channel: known are %s", name, strings.Join(channels, " and ")))
		case n < 0 || n > rebuilders && len(all) == len(file.Keys):
			errs = append(errs, diag.At(at, "rebuilders: %s requires %d keys, and the file names %d that may rebuild", name, n, rebuilders))
		}
	}
	t := Trust{Keys: all, Rebuilders: file.Rebuilders}
	for i, name := range file.Timestamps {
		var a root.TimestampingAuthority
		data, err := r.read(name, maxKey)
		if err == nil {
			a, err = parseAuthority(r.beside(name), data)
		}
		if err != nil {
			errs = append(errs, diag.At(index.At("timestamps[%d]", i), "reading a timestamp authority: %w", err))
		}
		t.Authorities = append(t.Authorities, a)
	}
	return t, errors.Join(errs...)
}

// signer reads a key or an identity, or returns where its fault is.
func (r *trustReader) signer(key, issuer, subject, roots string) (k PublicKey, at string, err error) {
	if issuer+subject+roots == "" {
		data, err := r.read(key, maxKey)
		if err != nil {
			return k, ".key", unread(err)
		}
		k, err = parsePublicKey(r.beside(key), data)
		return k, ".key", err
	}
	if key != "" {
		return k, ".key", errors.New("name a key, or an issuer, a subject and roots")
	}
	data, err := r.read(roots, maxTrustFile)
	if err == nil {
		k, err = parseIdentity(r.beside(roots), data, issuer, subject)
	}
	return k, "", err
}

// String identifies a key to a person: by its owner, if it names one, and by its id.
func (p PublicKey) String() string {
	if p.identity != nil {
		return p.ID
	}
	return strings.TrimSpace(cmp.Or(p.Owner.String(), "key") + " " + p.ID)
}

// Find returns the trusted key with an id.
func (t Trust) Find(id string) (PublicKey, bool) {
	i := slices.IndexFunc(t.Keys, func(k PublicKey) bool { return k.ID == id })
	if i < 0 {
		return PublicKey{}, false
	}
	return t.Keys[i], true
}
