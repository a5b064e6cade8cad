//go:build !windows

package workerkit

import "net"

// dial connects to the module's socket.
func dial(path string) (net.Conn, error) {
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
}
