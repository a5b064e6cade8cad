package protocol

// The exit statuses of a worker (after sysexits.h where it has a fitting one).
const (
	ExitOK        = 0  // SHUTDOWN, or the module ended the stream while the worker was idle
	ExitUsage     = 64 // wrong flags
	ExitEngine    = 70 // the engine failed for good: a library missing or wrong
	ExitIO        = 74 // the socket failed, or the module vanished with a request in hand
	ExitViolation = 76 // the module broke the protocol; the reason is on stderr
	ExitRefused   = 77 // the module refused this worker at the handshake
)
