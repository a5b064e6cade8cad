//go:build linux

// Command chaos runs the fault campaign against package host: thousands of seeded
// faults in real worker processes. It exits 0 when every one ended in a right
// answer or the right typed error and nothing was left behind, 1 when not, 2 when
// it could not run. See package chaos.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/chaos"
	"github.com/synapse-module/workers/internal/puppet"
	"github.com/synapse-module/workers/protocol"
)

type flags struct {
	Seed     uint64   `help:"Seed of the campaign; 0 for one made of the time." default:"0"`
	Faults   int      `help:"How many faults." default:"10000"`
	Only     int      `help:"Run this fault of the seed alone." default:"-1"`
	Parallel int      `help:"How many at once." default:"16"`
	Fake     string   `help:"The worker-fake binary." default:"bin/worker-fake"`
	Engine   []string `help:"A worker of a real engine, to be killed too, and the embedding model that it loads." placeholder:"FORMAT=WORKER=MODEL" sep:"none"`
}

func main() {
	puppet.Main() // the campaign's puppets are this program
	var f flags
	kong.Parse(&f, kong.Name("chaos"), kong.Description("Inject seeded faults into workers and hold the module's side to its promises."))
	ok, err := run(f)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}

func run(f flags) (bool, error) {
	fake, err := filepath.Abs(f.Fake)
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(fake); err != nil {
		return false, fmt.Errorf("worker-fake is not built, run make build: %w", err)
	}
	c := chaos.Config{Seed: f.Seed, Faults: f.Faults, Only: f.Only, Parallel: f.Parallel, Fake: fake}
	if c.Seed == 0 {
		c.Seed = uint64(time.Now().UnixNano())
	}
	for _, text := range f.Engine {
		e, err := engine(text)
		if err != nil {
			return false, err
		}
		c.Engines = append(c.Engines, e)
	}
	bar := progressbar.NewOptions(f.Faults, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetVisibility(term.IsTerminal(int(os.Stderr.Fd()))), progressbar.OptionSetDescription("faults"), progressbar.OptionClearOnFinish())
	c.Progress = func(done int) { _ = bar.Set(done) }
	r, err := chaos.Run(c)
	_ = bar.Finish()
	if err != nil {
		return false, err
	}
	r.Print(os.Stdout)
	return r.OK(), nil
}

// engine reads a value of --engine.
func engine(text string) (chaos.Engine, error) {
	parts := strings.Split(text, "=")
	if len(parts) != 3 {
		return chaos.Engine{}, fmt.Errorf("--engine %s: FORMAT=WORKER=MODEL is due", text)
	}
	format, worker, path := parts[0], parts[1], parts[2]
	model, err := os.Open(path)
	if err != nil {
		return chaos.Engine{}, fmt.Errorf("--engine: %w", err)
	}
	defer model.Close()
	digest, err := protocol.FileDigest(model)
	if err != nil {
		return chaos.Engine{}, err
	}
	return chaos.Engine{
		Name: format,
		Spec: host.Spec{Path: worker},
		// Sixteen at once on a few cores: a second thread of each would only wait.
		Model: host.LoadRequest{Path: path, Digest: digest, Format: format, Config: map[string]any{"threads": 1}},
	}, nil
}
