package workerkit

import (
	"net"
	"time"

	"github.com/Microsoft/go-winio"
)

// pipeBusyTimeout bounds the wait for a free instance of the module's pipe. The
// module makes one for this worker before it starts it.
const pipeBusyTimeout = 5 * time.Second

// dial connects to the module's named pipe.
func dial(path string) (net.Conn, error) {
	wait := pipeBusyTimeout
	return winio.DialPipe(path, &wait)
}
