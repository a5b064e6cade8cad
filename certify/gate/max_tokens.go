package gate

import (
	"errors"
	"fmt"

	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/protocol"
)

// MaxTokens judges the limit that a worker states in DESCRIBE: it is at least
// the suite's, a row of exactly that length gave a finite answer, and one more
// token was refused as request_invalid. A limit that is only said and not
// enforced is how texts get cut in silence.
//
// longest and longestErr are the answer to the row of exactly stated tokens,
// overErr the answer to the row of one more.
func MaxTokens(t suite.MaxTokens, stated int, longest []float32, longestErr, overErr error) []Check {
	passes := hold("max_tokens", "rows of that length taken", 1, Equal, 1, "")
	if longestErr != nil || len(longest) == 0 || !finite(longest) {
		passes = hold("max_tokens", passes.Figure, 0, Equal, 1, "")
		passes.Detail = fmt.Sprintf("%d tokens: ", stated)
		if longestErr != nil {
			passes.Detail += longestErr.Error()
		} else {
			passes.Detail += "the answer is not finite"
		}
	}
	refused := hold("max_tokens", "rows of one more refused", 1, Equal, 1, "")
	if !errors.Is(overErr, &protocol.Error{Code: protocol.CodeRequestInvalid}) {
		refused = hold("max_tokens", refused.Figure, 0, Equal, 1, "")
		refused.Detail = fmt.Sprintf("%d tokens: ", stated+1)
		if overErr != nil {
			refused.Detail += overErr.Error()
		} else {
			refused.Detail += "taken, so something was cut or the limit is not the model's"
		}
	}
	return []Check{
		hold("max_tokens", "stated", float64(stated), AtLeast, float64(t.Min), ""),
		passes, refused,
	}
}
