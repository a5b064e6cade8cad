package protocol

import "fmt"

// SocketPathError says that a socket's path does not fit the system's address
// structure, whose size is a constant of the kernel.
type SocketPathError struct {
	Path  string
	Limit int // bytes, without the terminating NUL
}

func (e *SocketPathError) Error() string {
	return fmt.Sprintf("the socket path %s is %d bytes long, this system's limit is %d: choose a shorter runtime directory", e.Path, len(e.Path), e.Limit)
}

// CheckSocketPath returns a [SocketPathError] for a path that cannot be bound or
// connected to on this system.
func CheckSocketPath(path string) error {
	if len(path) > maxSocketPath {
		return &SocketPathError{Path: path, Limit: maxSocketPath}
	}
	return nil
}
