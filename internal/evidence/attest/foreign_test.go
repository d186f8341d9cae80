package attest

import (
	"os"
	"testing"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	result "github.com/in-toto/attestation/go/predicates/test_result/v0"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"builder/internal/evidence/signing"
	"builder/test/kit/must"
)

// The types of the in-toto project, used by slsa-verifier and cosign, must be able to
// read the statements.
func TestForeignReaders(t *testing.T) {
	b := newBundle(t)
	lenient := protojson.UnmarshalOptions{DiscardUnknown: true} // in-toto allows additional fields in a predicate
	for name, c := range map[string]struct {
		predicate proto.Message
		options   protojson.UnmarshalOptions
	}{
		"provenance.sigstore.json": {predicate: new(provenance.Provenance)},
		b.rounds()[0]:              {predicate: new(result.TestResult), options: lenient},
	} {
		data, err := os.ReadFile(b.file(name))
		must.Succeed(t, err)
		signed, err := signing.Trust{Keys: []signing.PublicKey{b.key.Public()}}.Open(data)
		must.Succeed(t, err)
		var s intoto.Statement
		if err := protojson.Unmarshal(signed.Statement, &s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		predicate, err := protojson.Marshal(s.GetPredicate())
		must.Succeed(t, err)
		if err := c.options.Unmarshal(predicate, c.predicate); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v, ok := c.predicate.(interface{ Validate() error }); ok {
			if err := v.Validate(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
