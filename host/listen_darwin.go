package host

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peerPID is the id of the process that connected, as the kernel knows it.
func peerPID(conn net.Conn) (int, error) {
	return ofSocket(conn, func(fd int) (int, error) {
		pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		if err != nil {
			return 0, fmt.Errorf("LOCAL_PEERPID: %w", err)
		}
		return pid, nil
	})
}
