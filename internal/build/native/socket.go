package native

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sockets is the directory of the sockets of all homes. A path in a home may be too long
// for a socket.
const sockets = "/run/builder"

// socketOf returns the path of the engine's socket for HOME/engine. It differs for every
// home.
func socketOf(dir string) string { return filepath.Join(sockets, hash(dir)[:12]+".sock") }

// ready waits until the engine answers.
func ready(ctx context.Context, socket string, exited <-chan error) error {
	deadline := time.Now().Add(startTimeout)
	for !answers(socket) {
		select {
		case err := <-exited:
			if err == nil {
				err = errors.New("exit status 0")
			}
			return fmt.Errorf("the engine ended during its start: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the engine did not answer within %s", startTimeout)
		}
	}
	return nil
}

// answers reports whether a socket accepts connections.
func answers(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// connections counts the connections to a socket. One line of the kernel's list is the
// listener.
func connections(socket string) int {
	text, _ := os.ReadFile("/proc/net/unix")
	return max(0, strings.Count(string(text), " "+socket+"\n")-1)
}

// settle limits the wait for the connections of a dying engine to close.
const settle = 15 * time.Second

// used reports whether a client uses the engine. A client keeps its connections while it
// works. The connection of [answers] disappears after a moment, and those of a
// killed engine after its socket.
func used(socket string) bool {
	wait := time.Second
	if !answers(socket) {
		wait = settle
	}
	for end := time.Now().Add(wait); connections(socket) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return true
		}
	}
	return false
}
