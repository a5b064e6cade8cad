package host

import "time"

// Clock is where a [Pool] takes time from, so that its rules are tested without
// waiting. Deadlines of requests are not its business: contexts keep those.
type Clock interface {
	Now() time.Time
	// Timer fires once, d from now, unless stop is called before.
	Timer(d time.Duration) (fired <-chan time.Time, stop func())
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
