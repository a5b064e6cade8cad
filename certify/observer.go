package certify

// Observer is told how a run gets on. Its methods are called from one goroutine.
type Observer interface {
	// Begin starts a stage of total steps of the artifact of the suite.
	Begin(suite, artifact, stage string, total int)

	// Advance says that n more steps of the stage are done.
	Advance(n int)

	// End ends the run of an artifact.
	End(suite string, r ArtifactResult)
}

// silent is the observer of a caller that named none.
type silent struct{}

func (silent) Begin(_, _, _ string, _ int) {}
func (silent) Advance(int)                 {}
func (silent) End(string, ArtifactResult)  {}
