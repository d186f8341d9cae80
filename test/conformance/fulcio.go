package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/sigstore/fulcio/pkg/ca/ephemeralca"
	"github.com/sigstore/fulcio/pkg/config"
	fulcio "github.com/sigstore/fulcio/pkg/generated/protobuf"
	"github.com/sigstore/fulcio/pkg/server"
	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/grpc/metadata"
)

// serveCertificates runs Sigstore's Fulcio with a new CA, and an issuer of tokens like
// that of GitHub Actions. It prints their address, and writes the certificate of the CA to
// a file. It ends with its standard input.
func serveCertificates(file string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := "http://" + l.Addr().String()
	issuer, err := newIssuer(address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", issuer)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		l.Close()
	}()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	// The configuration of Fulcio asks the issuer for its keys.
	data, err := json.Marshal(config.FulcioConfig{OIDCIssuers: map[string]config.OIDCIssuer{
		address: {IssuerURL: address, ClientID: "sigstore", Type: config.IssuerTypeGithubWorkflow},
	}})
	if err != nil {
		return err
	}
	cfg, err := config.Read(data)
	if err != nil {
		return err
	}
	ca, err := ephemeralca.NewEphemeralCA()
	if err != nil {
		return err
	}
	chains, err := ca.TrustBundle(context.Background())
	if err != nil {
		return err
	}
	pem, err := cryptoutils.MarshalCertificatesToPEM(chains[0])
	if err == nil {
		err = os.WriteFile(file, pem, 0o600)
	}
	if err != nil {
		return err
	}
	algorithms, err := signature.NewAlgorithmRegistryConfig([]common.PublicKeyDetails{common.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256})
	if err != nil {
		return err
	}
	gateway := runtime.NewServeMux(runtime.WithMetadata(func(_ context.Context, r *http.Request) metadata.MD {
		return metadata.Pairs(server.MetadataOIDCTokenKey, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}))
	if err := fulcio.RegisterCAHandlerServer(context.Background(), gateway, server.NewGRPCCAServer(nil, ca, algorithms, server.NewIssuerPool(cfg))); err != nil {
		return err
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		gateway.ServeHTTP(w, r.WithContext(config.With(r.Context(), cfg)))
	})
	fmt.Println(address)
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// newIssuer returns an OIDC issuer. /token?workflow=WORKFLOW&audience=AUDIENCE returns a
// token for a job of a workflow, in the form of GitHub Actions.
func newIssuer(address string) (http.Handler, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		return nil, err
	}
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": address, "jwks_uri": address + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer of-the-job" {
			http.Error(w, "not a job", http.StatusUnauthorized)
			return
		}
		claims := map[string]any{
			"iss": address, "aud": r.URL.Query().Get("audience"), "exp": time.Now().Add(5 * time.Minute).Unix(), "iat": time.Now().Unix(),
			"sub": "repo:example/wheels:ref:refs/heads/main", "job_workflow_ref": r.URL.Query().Get("workflow"),
		}
		for _, name := range []string{
			"sha", "event_name", "repository", "workflow", "ref", "job_workflow_sha", "runner_environment", "repository_id", "repository_owner",
			"repository_owner_id", "repository_visibility", "workflow_ref", "workflow_sha", "run_id", "run_attempt",
		} {
			claims[name] = "example"
		}
		data, err := json.Marshal(claims)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		token, err := signer.Sign(data)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		text, _ := token.CompactSerialize()
		answer(w, map[string]string{"value": text})
	})
	return mux, nil
}
