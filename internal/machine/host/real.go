package host

import (
	"context"
	"net"
	"os"
	"time"
)

// Time limits for operations that may hang.
const (
	programTime = time.Minute // nvidia-smi takes some seconds with eight GPUs, and hangs if the driver does
	dialTime    = 3 * time.Second
)

// This returns the host of this process.
func This() Host {
	return Host{
		FS: os.DirFS("/"), Path: os.Getenv("PATH"),
		Run: Run, Dial: dial, Disk: DiskOf, Writable: writable,
	}
}

func dial(ctx context.Context, network, address string) error {
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}
