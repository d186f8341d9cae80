package pipelines

import (
	"context"
	"fmt"
	"io"

	"dagger.io/dagger"
)

// Version asks the engine at an address for its version, with the client program
// at a path.
func Version(ctx context.Context, address, client string) (string, error) {
	if err := useClient(client); err != nil {
		return "", err
	}
	session, err := dagger.Connect(ctx, dagger.WithLogOutput(io.Discard), dagger.WithRunnerHost(address))
	if err != nil {
		return "", fmt.Errorf("connecting to the engine: %w", err)
	}
	defer session.Close()
	return session.Version(ctx)
}
