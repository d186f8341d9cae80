package pipelines

import (
	"context"
	"fmt"
)

// Version returns the version of the engine at an address, using the client program at
// a path. The wait ends with ctx, even if the engine hangs.
func Version(ctx context.Context, address, client string) (string, error) {
	e := Engine{Address: address, CLI: client}
	ctx, s, err := e.connect(ctx)
	if err != nil {
		return "", err
	}
	defer s.close(ctx)
	v, err := s.client.Version(ctx)
	if err != nil {
		return "", fmt.Errorf("asking the engine at %s for its version: %w", address, err)
	}
	return v, nil
}
