package conformance

import (
	"net"
	"strings"

	"github.com/Microsoft/go-winio"
)

// listen opens a named pipe for this user.
func listen() (net.Listener, string, error) {
	name := nowhere()
	l, err := winio.ListenPipe(name, nil)
	return l, name, err
}

// nowhere is the name of a pipe on which nobody listens.
func nowhere() string { return `\\.\pipe\certify-` + randomHex(16) }

// tooLong is the name of a pipe that the system does not take.
func tooLong() string { return `\\.\pipe\` + strings.Repeat("x", 300) }
