// Package certify holds a worker binary, on this machine and with one artifact,
// to an independent reference.
//
// It uses the worker as any module does, through package host, and knows no
// engine. [Run] measures; what it found is a [Result], whose verdict is one of
//
//   - passed: every gate passed, and every negative control was caught
//   - failed: a gate failed; the check names the figure, the limit and the input
//   - void: the gates passed, but a control that had to fail passed them as well,
//     so they cannot tell right from wrong here
//   - unmeasured: the worker died, hung or refused, and says why in its log
//
// Suites are read by package suite, judged by package gate and shown by package
// report.
package certify
