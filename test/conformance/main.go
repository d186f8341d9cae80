// Conformance checks the signed statements about artifacts with the programs of others:
// cosign and in-toto-golang. Usage: conformance [--roots FILE] PUBLIC-KEY ARTIFACT...
// With --roots, every bundle must have a time stamp of an authority in this
// trusted_root.json, and conformance roots FILE CHAIN [CA] writes one. conformance tsa is
// such an authority. conformance --roots FILE identity ISSUER SUBJECT ARTIFACT checks
// signatures with certificates, and conformance fulcio CA issues them.
//
// It imports no package of builder, so that no mistake of builder can hide another.
package main

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	statement "github.com/in-toto/attestation/go/v1"
	"github.com/in-toto/in-toto-golang/in_toto"
	slsa "github.com/in-toto/in-toto-golang/in_toto/slsa_provenance/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/secure-systems-lab/go-securesystemslib/signerverifier"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"
)

func main() {
	args, errs := os.Args[1:], []error{}
	options := cosign.CheckOpts{IgnoreTlog: true, Offline: true, NewBundleFormat: true, ClaimVerifier: cosign.IntotoSubjectClaimVerifier}
	if len(args) == 1 && args[0] == "tsa" {
		exit(serveTime())
	}
	if len(args) == 2 && args[0] == "fulcio" {
		exit(serveCertificates(args[1]))
	}
	if len(args) > 2 && args[0] == "roots" {
		exit(writeRoots(args[1], args[2], args[3:]))
	}
	if len(args) > 2 && args[0] == "--roots" {
		roots, err := root.NewTrustedRootFromPath(args[1])
		exitOn(err)
		options.UseSignedTimestamps, options.TrustedMaterial, args = true, roots, args[2:]
	}
	if len(args) == 4 && args[0] == "identity" {
		options.Identities = []cosign.Identity{{Issuer: args[1], Subject: args[2]}}
		options.IgnoreSCT = true
		args = []string{"", args[3]}
	}
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance [--roots FILE] PUBLIC-KEY ARTIFACT... | conformance tsa")
		os.Exit(2)
	}
	for _, path := range args[1:] {
		errs = append(errs, artifact(options, args[0], path))
	}
	exit(errors.Join(errs...))
}

// exit ends the program.
func exit(err error) {
	exitOn(err)
	os.Exit(0)
}

// exitOn ends the program if there is an error.
func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// artifact checks all statements beside one artifact.
func artifact(options cosign.CheckOpts, key, path string) error {
	dir := path + ".attestations"
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	bundles := 0
	for _, f := range files {
		file := filepath.Join(dir, f.Name())
		if !strings.HasSuffix(f.Name(), ".sigstore.json") {
			continue
		}
		bundles++
		if err := signed(options, key, path, file); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
	}
	if bundles == 0 {
		errs = append(errs, fmt.Errorf("%s holds no bundle", dir))
	}
	return errors.Join(errs...)
}

// signed checks one bundle with cosign, and its envelope and statement with in-toto.
func signed(options cosign.CheckOpts, key, path, file string) error {
	b, err := bundle.LoadJSONFromPath(file)
	if err != nil {
		return err
	}
	pem, err := publicKey(key, b)
	if err != nil {
		return err
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(pem)
	if err != nil {
		return err
	}
	if err := cosigned(options, public, path, b); err != nil {
		return fmt.Errorf("cosign: %w", err)
	}
	var raw struct {
		Envelope dsse.Envelope `json:"dsseEnvelope"`
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	kind, err := inToto(string(pem), raw.Envelope)
	if err != nil {
		return fmt.Errorf("in-toto: %w", err)
	}
	fmt.Printf("%s: cosign and in-toto verify it: %s\n", filepath.Base(file), kind)
	return nil
}

// publicKey returns the key in a file, or that of the certificate in a bundle.
func publicKey(file string, b *bundle.Bundle) ([]byte, error) {
	if file != "" {
		return os.ReadFile(file)
	}
	content, err := b.VerificationContent()
	if err != nil {
		return nil, err
	}
	if content.Certificate() == nil {
		return nil, errors.New("it has no certificate")
	}
	return cryptoutils.MarshalPublicKeyToPEM(content.Certificate().PublicKey)
}

// cosigned does as cosign verify-blob-attestation --key KEY --insecure-ignore-tlog, and for
// an identity as with --use-signed-timestamps.
func cosigned(options cosign.CheckOpts, public crypto.PublicKey, path string, b *bundle.Bundle) error {
	verifier, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return err
	}
	if len(options.Identities) > 0 {
		verifier = nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if verifier != nil {
		options.SigVerifier = verifier
	}
	_, err = cosign.VerifyNewBundle(context.Background(), &options, verify.WithArtifact(f), b)
	return err
}

// inToto verifies the envelope with the library of in-toto, and reads the statement
// with its types. A field unknown to SLSA makes a provenance wrong.
func inToto(pem string, e dsse.Envelope) (kind string, err error) {
	key, err := signerverifier.LoadKey([]byte(pem))
	if err != nil {
		return "", err
	}
	of, err := signerverifier.NewECDSASignerVerifierFromSSLibKey(key)
	if err != nil {
		return "", err
	}
	all, err := dsse.NewEnvelopeVerifier(of)
	if err != nil {
		return "", err
	}
	if _, err := all.Verify(context.Background(), &e); err != nil {
		return "", err
	}
	if e.PayloadType != in_toto.PayloadType {
		return "", fmt.Errorf("payload of the type %q", e.PayloadType)
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		return "", err
	}
	var s statement.Statement
	if err := protojson.Unmarshal(payload, &s); err != nil {
		return "", err
	}
	if err := s.Validate(); err != nil {
		return "", err
	}
	if s.GetPredicateType() == "https://slsa.dev/provenance/v1" {
		var raw struct{ Predicate json.RawMessage }
		var p slsa.ProvenancePredicate
		if err := errors.Join(json.Unmarshal(payload, &raw), strictly(raw.Predicate, &p)); err != nil {
			return "", fmt.Errorf("SLSA provenance: %w", err)
		}
	}
	return s.GetPredicateType(), nil
}

// strictly decodes JSON without unknown fields.
func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
