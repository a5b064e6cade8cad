package report

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/synapse-module/workers/certify"
)

// barWidth leaves room for the description on a terminal of 80 columns.
const barWidth = 20

// Progress shows how a run gets on: a bar on a terminal, a line a stage
// elsewhere. It is a [certify.Observer] that writes each artifact's table where
// it ends.
type Progress struct {
	lines    io.Writer // where the bar or the lines go; nil for none
	end      func(suite string, r certify.ArtifactResult)
	terminal bool
	bar      *progressbar.ProgressBar
}

// NewProgress writes to lines, which may be nil, and calls end at the end of
// each artifact.
func NewProgress(lines io.Writer, end func(suite string, r certify.ArtifactResult)) *Progress {
	return &Progress{lines: lines, end: end, terminal: IsTerminal(lines)}
}

// IsTerminal reports whether w is one.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Begin starts a stage.
func (p *Progress) Begin(suite, artifact, stage string, total int) {
	p.finish()
	switch {
	case p.lines == nil:
	case p.terminal:
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(p.lines),
			progressbar.OptionSetWidth(barWidth),
			progressbar.OptionSetDescription(artifact+" "+stage),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionClearOnFinish(),
		)
	default:
		fmt.Fprintf(p.lines, "%s %s: %s\n", suite, artifact, stage)
	}
}

// Advance moves the bar.
func (p *Progress) Advance(n int) {
	if p.bar != nil {
		// A terminal that cannot be drawn on has no use for an error about it.
		_ = p.bar.Add(n)
	}
}

// End clears the bar and shows the artifact's result.
func (p *Progress) End(suite string, r certify.ArtifactResult) {
	p.finish()
	p.end(suite, r)
}

func (p *Progress) finish() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}
