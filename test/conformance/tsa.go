package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/sigstore/timestamp-authority/v2/pkg/server"
	"github.com/spf13/viper"
)

// serveTime runs Sigstore's timestamp authority with a key in memory, and prints its
// address. It ends with its standard input.
func serveTime() error {
	for key, value := range map[string]any{
		"timestamp-signer": "memory", "timestamp-signer-hash": "sha256",
		"default-policy-oid": "1.3.6.1.4.1.57264.2", "accepted-policy-oids": []string{"1.3.6.1.4.1.57264.2"},
	} {
		viper.Set(key, value)
	}
	api := server.NewRestAPIServer("localhost", 0, []string{"http"}, false, 10*time.Second, 10*time.Second)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/api/v1/timestamp\n", l.Addr())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		l.Close()
	}()
	s := &http.Server{Handler: api.GetHandler(), ReadHeaderTimeout: time.Second}
	if err := s.Serve(l); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
