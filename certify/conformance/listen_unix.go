//go:build unix

package conformance

import (
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/synapse-module/workers/protocol"
)

// listen opens a socket in a private directory, which goes when it is closed.
func listen() (net.Listener, string, error) {
	dir, err := os.MkdirTemp("", "certify-")
	if err != nil {
		return nil, "", err
	}
	path := filepath.Join(dir, "s")
	if err := protocol.CheckSocketPath(path); err != nil {
		_ = os.Remove(dir) // the error above says more
		return nil, "", err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		_ = os.Remove(dir)
		return nil, "", err
	}
	return &privateListener{l, dir}, path, nil
}

type privateListener struct {
	net.Listener
	dir string
}

func (l *privateListener) Close() error {
	err := l.Listener.Close()
	if rerr := os.RemoveAll(l.dir); err == nil {
		err = rerr
	}
	return err
}

// nowhere is a socket path on which nobody listens.
func nowhere() string { return filepath.Join(os.TempDir(), "certify-nobody-"+randomHex(4)) }

// tooLong is a socket path that the system does not take.
func tooLong() string { return "/" + strings.Repeat("x", 200) }
