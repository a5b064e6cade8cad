package host

import (
	"fmt"
	"net"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

const (
	// pipeNameBytes of randomness name one start's pipe: the name space is shared
	// by all users, so the name must be beyond guessing.
	pipeNameBytes = 16

	// pipeBuffer holds a whole small request in each direction, so that writer and
	// reader need not run in step.
	pipeBuffer = 64 << 10
)

// listen makes a named pipe that only this user can open. There is no directory,
// and nothing is left behind: a pipe's name lives as long as its last handle.
func listen(string) (*rendezvous, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, fmt.Errorf("host: ask who runs this module: %w", err)
	}
	address := `\\.\pipe\synapse-worker-` + randomHex(pipeNameBytes)
	l, err := winio.ListenPipe(address, &winio.PipeConfig{
		SecurityDescriptor: fmt.Sprintf("D:P(A;;GA;;;%s)", user.User.Sid),
		InputBufferSize:    pipeBuffer,
		OutputBufferSize:   pipeBuffer,
	})
	if err != nil {
		return nil, fmt.Errorf("host: listen for the worker: %w", err)
	}
	return &rendezvous{address: address, l: l, remove: func() {}}, nil
}

// peerPID is the id of the process that connected, as the system knows it.
func peerPID(conn net.Conn) (int, error) {
	handle, ok := conn.(interface{ Fd() uintptr })
	if !ok {
		return 0, fmt.Errorf("a pipe without a handle")
	}
	var pid uint32
	if err := windows.GetNamedPipeClientProcessId(windows.Handle(handle.Fd()), &pid); err != nil {
		return 0, fmt.Errorf("GetNamedPipeClientProcessId: %w", err)
	}
	return int(pid), nil
}
