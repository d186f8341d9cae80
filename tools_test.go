package builder

import (
	_ "charm.land/lipgloss/v2"
	_ "dagger.io/dagger"
	_ "github.com/bluekeyes/go-gitdiff/gitdiff"
	_ "github.com/cenkalti/backoff/v5"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/hashicorp/go-version"
	_ "github.com/invopop/jsonschema"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/sourcegraph/conc/iter"
	_ "github.com/ulikunitz/xz"
	_ "github.com/urfave/cli/v2"
	_ "go.yaml.in/yaml/v4"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "oras.land/oras-go/v2"
	_ "pgregory.net/rapid"
)
