package host

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"builder/internal/base/web"
	"builder/internal/input/store"
)

// Time limits for operations that may hang.
const (
	programTime = time.Minute     // nvidia-smi takes some seconds with eight GPUs, and hangs if the driver does
	askTime     = 8 * time.Second // for an HTTP request
	dialTime    = 3 * time.Second
)

// This returns the host of this process.
func This() Host {
	return Host{
		FS: os.DirFS("/"), Path: os.Getenv("PATH"),
		Run: Run, Dial: dial, Disk: DiskOf, Writable: writable,
	}
}

// Ask sends a HEAD request to an http or https address and returns the status.
func Ask(ctx context.Context, address string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	status, err := web.Status(ctx, address)
	if err != nil {
		return 0, withoutAddress(err)
	}
	return status, nil
}

// withoutAddress removes the address that net/http puts before a message, and the
// address of a proxy inside it. Either may contain a password.
func withoutAddress(err error) error {
	return errors.New(store.Redact(web.WithoutAddress(err).Error()))
}

func dial(ctx context.Context, network, address string) error {
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}
