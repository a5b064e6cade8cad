package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/synapse-module/workers/internal/assets"
)

// proveCmd unpacks each archive into a read-only folder and lets its workers do
// real work there: as they are where this is their platform, else under an
// emulator. What cannot run here is inspected.
type proveCmd struct {
	Dist     string   `arg:"" help:"goreleaser's folder."`
	Platform []string `help:"Only these, as GOOS/GOARCH."`
	Commit   string   `required:"" help:"The commit that every command must say that it was built from."`

	WineProbe string `help:"The module for wine: pipeprobe.exe."`
	WineShim  string `help:"bcryptprimitives.dll, which wine 8 lacks."`
}

// proof is one line of the table.
type proof struct {
	platform platform
	command  string
	what     string
	result   string // what was seen
	err      error
}

// prover collects the proofs of one archive.
type prover struct {
	cmd      proveCmd
	release  *release
	store    *assets.Store
	platform platform
	dir      string // where the archive is unpacked, read-only
	scratch  string // where proofs may write
	proofs   []proof
}

func (v *prover) note(command, what, result string, err error) {
	p := proof{v.platform, command, what, result, err}
	v.proofs = append(v.proofs, p)
	fmt.Fprintf(os.Stderr, "%s %s: %s: %s\n", p.platform, p.command, p.what, p.outcome())
}

func (p proof) outcome() string {
	switch {
	case p.err != nil:
		return "FAILED: " + p.err.Error()
	case p.result != "":
		return "ok: " + p.result
	}
	return "ok"
}

func (c proveCmd) Run(ctx context.Context) error {
	r, err := openRelease(".")
	if err != nil {
		return err
	}
	store, err := assets.Open(".", assets.NewProgress(os.Stderr))
	if err != nil {
		return err
	}
	archives, err := r.archives(c.Dist)
	if err != nil {
		return err
	}
	var all []proof
	for _, a := range archives {
		if len(c.Platform) > 0 && !contains(c.Platform, a.platform) {
			continue
		}
		proofs, err := c.proveArchive(ctx, r, store, a)
		if err != nil {
			return err
		}
		all = append(all, proofs...)
	}
	return report(all)
}

func contains(all []string, p platform) bool {
	for _, s := range all {
		if platform(s) == p {
			return true
		}
	}
	return false
}

func (c proveCmd) proveArchive(ctx context.Context, r *release, store *assets.Store, a archive) ([]proof, error) {
	scratch, err := os.MkdirTemp("", "prove-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = removeTree(scratch) }() // what is left in a temporary folder hurts nobody
	// Another user must be able to go in.
	if err := os.Chmod(scratch, 0o755); err != nil {
		return nil, err
	}
	dir := filepath.Join(scratch, "unpacked")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	names, err := unpack(a.path, dir)
	if err != nil {
		return nil, err
	}
	if err := closeTree(dir); err != nil {
		return nil, err
	}
	v := &prover{cmd: c, release: r, store: store, platform: a.platform, dir: dir, scratch: scratch}
	v.note("archive", "holds what it must", fmt.Sprintf("%d files", len(names)), inspectLayout(r, a.platform, dir, names))
	v.note("archive", "names no path of this machine", "", inspectPaths(ctx, r, a.platform, dir))
	floor, err := inspectNeeds(a.platform, dir, names)
	if floor != "" {
		floor = "from " + floorName[a.platform.os()] + " " + floor + " on"
	}
	v.note("archive", "needs only the system", floor, err)
	return v.proofs, v.run(ctx)
}

// report prints the table, and fails where any proof has.
func report(all []proof) error {
	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"platform", "command", "proof", "result"})
	failed := 0
	for _, p := range all {
		if p.err != nil {
			failed++
		}
		t.AppendRow(table.Row{p.platform, p.command, p.what, p.outcome()})
	}
	t.Render()
	if failed > 0 {
		return fmt.Errorf("%d of %d proofs failed", failed, len(all))
	}
	if len(all) == 0 {
		return errors.New("nothing was proven")
	}
	return nil
}
