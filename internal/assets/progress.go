package assets

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// barWidth leaves room for the description on a terminal of 80 columns.
const barWidth = 20

// Progress says what is being done: lines, and on a terminal a bar of the
// package bytes below them.
type Progress struct {
	w        io.Writer
	terminal bool
	bar      *progressbar.ProgressBar
}

// NewProgress writes to w.
func NewProgress(w io.Writer) *Progress {
	f, ok := w.(*os.File)
	return &Progress{w: w, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

// expect starts the bar over total bytes of packages.
func (p *Progress) expect(total int64) {
	if !p.terminal || total == 0 {
		return
	}
	p.bar = progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(p.w),
		progressbar.OptionSetWidth(barWidth),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowTotalBytes(true),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionClearOnFinish(),
	)
}

// say prints one line above the bar.
func (p *Progress) say(format string, args ...any) {
	if p.bar != nil {
		// A terminal that cannot be drawn on has no use for an error about it.
		_ = p.bar.Clear()
	}
	fmt.Fprintf(p.w, format+"\n", args...)
	if p.bar != nil {
		_ = p.bar.RenderBlank()
	}
}

// add moves the bar by n bytes.
func (p *Progress) add(n int64) {
	if p.bar != nil {
		_ = p.bar.Add64(n)
	}
}

// done takes the bar away.
func (p *Progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}

// megabytes prints a size as package indexes do, in units of 10^6 bytes.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
