// Package gate judges vectors: pure functions from what a worker gave, and what
// it should have given, to figures held to limits.
//
// Every function is total. A vector that is not finite gives a figure that is
// not finite, and no limit admits one; an empty list gives no figure to pass
// with. So whatever a worker answers, silence is never a pass.
package gate
