package main

import (
	"crypto/x509"
	"os"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// writeRoots writes a trusted_root.json with the certificates of a timestamp authority,
// the one of its key first and the root last, and with those of the CAs.
func writeRoots(file, chain string, cas []string) error {
	stamps, err := certificates(chain)
	if err != nil {
		return err
	}
	n := len(stamps) - 1
	authority := &root.SigstoreTimestampingAuthority{Leaf: stamps[0], Intermediates: stamps[1:n], Root: stamps[n], ValidityPeriodStart: stamps[0].NotBefore}
	var issuers []root.CertificateAuthority
	for _, ca := range cas {
		all, err := certificates(ca)
		if err != nil {
			return err
		}
		n := len(all) - 1
		issuers = append(issuers, &root.FulcioCertificateAuthority{Root: all[n], Intermediates: all[:n], ValidityPeriodStart: all[n].NotBefore})
	}
	r, err := root.NewTrustedRoot(root.TrustedRootMediaType01, issuers, nil, []root.TimestampingAuthority{authority}, nil)
	if err != nil {
		return err
	}
	data, err := r.MarshalJSON()
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

func certificates(file string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return cryptoutils.UnmarshalCertificatesFromPEM(data)
}
