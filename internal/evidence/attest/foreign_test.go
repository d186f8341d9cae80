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
	"builder/test/kit/check"
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
		err = protojson.Unmarshal(signed.Statement, &s)
		must.Hold(t, err == nil, "%s: %v", name, err)
		err = s.Validate()
		check.That(t, err == nil, "%s: %v", name, err)
		predicate, err := protojson.Marshal(s.GetPredicate())
		must.Succeed(t, err)
		err = c.options.Unmarshal(predicate, c.predicate)
		must.Hold(t, err == nil, "%s: %v", name, err)
		if v, ok := c.predicate.(interface{ Validate() error }); ok {
			err := v.Validate()
			check.That(t, err == nil, "%s: %v", name, err)
		}
	}
}
