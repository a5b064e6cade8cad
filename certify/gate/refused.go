package gate

import "github.com/synapse-module/workers/protocol"

// Refused is the failed check of a worker that refused a request which a sound
// one serves: every row of a suite is within the limits that it stated.
func Refused(refusal *protocol.Error) Check {
	c := hold("answers", "requests refused", 1, Equal, 0, "")
	c.Detail = refusal.Error()
	return c
}
