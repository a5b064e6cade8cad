package host

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peerPID is the id of the process that connected, as the kernel knows it.
func peerPID(conn net.Conn) (int, error) {
	return ofSocket(conn, func(fd int) (int, error) {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return 0, fmt.Errorf("SO_PEERCRED: %w", err)
		}
		return int(cred.Pid), nil
	})
}
