package host

import (
	"fmt"
	"net"
)

// A rendezvous is where one worker, and nobody else, connects: a name that cannot
// be guessed, in a place that only the module's user can reach, gone as soon as
// the worker is connected. The platform files make it; [rendezvous.accept] says
// who may come in.
type rendezvous struct {
	address string // the value of --socket
	l       net.Listener
	remove  func() // takes the name away
}

// accept returns the connection of the process pid. A connection of any other
// process is closed, and the wait goes on: whoever found the name must not be
// able to keep the worker out either. It ends with an error when the rendezvous
// is closed.
func (r *rendezvous) accept(pid int) (net.Conn, error) {
	for {
		conn, err := r.l.Accept()
		if err != nil {
			return nil, fmt.Errorf("accept the worker: %w", err)
		}
		peer, err := peerPID(conn)
		if err == nil && peer == pid {
			return conn, nil
		}
		conn.Close()
	}
}

// close refuses everyone from here on and takes the name away. It may be called
// more than once.
func (r *rendezvous) close() {
	r.l.Close()
	r.remove()
}
