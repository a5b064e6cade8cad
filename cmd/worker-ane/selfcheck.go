package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/synapse-module/workers/engines/coreml"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

type selfcheckFlags struct {
	Artifact     string `arg:"" optional:"" help:"Package, compiled model, or directory of several. Without one the system alone is looked at."`
	Format       string `enum:"mlpackage,mlmodelc" default:"mlpackage" help:"The artifact's format: ${enum}."`
	Digest       string `placeholder:"DIGEST" help:"What the artifact's tree digest must be."`
	ComputeUnits string `enum:"cpu_and_neural_engine,cpu_only,cpu_and_gpu,all" default:"cpu_and_neural_engine" help:"Devices that Core ML may use: ${enum}. In a virtual machine take cpu_only: there is no Neural Engine, and asking for it was seen to hang for half an hour."`
	JSON         bool   `name:"json" help:"Print one JSON object."`
	Verbose      bool   `short:"v" help:"Write the engine's log to stderr."`
	CacheDir     string `placeholder:"DIR" help:"Where compiled models are kept. Default: the user's cache directory, as the worker's."`
	EngineLib    string `placeholder:"DIR" help:"A stub of Core ML, for tests on Linux."`
}

const selfcheckHelp = `Shows whether Core ML here is what the worker expects, which devices it has, and for an artifact: that it loads, how near its golden rows are, which share of it is planned on the Neural Engine, and its latency against the CPU alone. Exits 0 where all is well, 70 where not.`

// selfcheck returns the exit status.
func selfcheck(args []string, stdout, stderr io.Writer) int {
	var f selfcheckFlags
	parser, err := kong.New(&f, kong.Name("worker-ane selfcheck"), kong.Description(selfcheckHelp), kong.Writers(stdout, stderr))
	if err != nil {
		panic(err) // the flags struct above is wrong
	}
	fail := func(status int, err error) int {
		fmt.Fprintf(stderr, "worker-ane selfcheck: %v\n", err)
		return status
	}
	if _, err := parser.Parse(args); err != nil {
		return fail(protocol.ExitUsage, err)
	}
	log := slog.New(slog.DiscardHandler)
	if f.Verbose {
		log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	o := coreml.SelfCheckOptions{
		Setup:    workerkit.Setup{LibDir: f.EngineLib, CacheDir: f.CacheDir, CacheLimit: workerkit.DefaultCacheLimit, Log: log},
		Artifact: f.Artifact, Digest: f.Digest, Format: f.Format, ComputeUnits: f.ComputeUnits,
	}
	if o.CacheDir == "" {
		if o.CacheDir, err = os.UserCacheDir(); err != nil {
			return fail(protocol.ExitUsage, fmt.Errorf("%w; name a directory with --cache-dir", err))
		}
		o.CacheDir = filepath.Join(o.CacheDir, "synapse-workers")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := coreml.SelfCheck(ctx, o)
	if err != nil {
		return fail(protocol.ExitEngine, err)
	}
	if f.JSON {
		b, err := r.JSON()
		if err != nil {
			return fail(protocol.ExitEngine, err)
		}
		if _, err := stdout.Write(b); err != nil {
			return fail(protocol.ExitIO, err)
		}
	} else if err := r.WriteText(stdout); err != nil {
		return fail(protocol.ExitIO, err)
	}
	if len(r.Failures) > 0 {
		return protocol.ExitEngine
	}
	return protocol.ExitOK
}
