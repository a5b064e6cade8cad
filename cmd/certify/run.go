package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/certificate"
	"github.com/synapse-module/workers/certify/report"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/certify/suites"
	"github.com/synapse-module/workers/internal/assets"
	"github.com/synapse-module/workers/internal/buildinfo"
)

type runCmd struct {
	Suites []string `arg:"" name:"suite" predictor:"suite" help:"Name of a shipped suite (${suites}), or a suite's folder, with a slash in its name."`

	Worker       string        `required:"" placeholder:"PATH" predictor:"file" help:"The worker's executable."`
	EngineLib    string        `placeholder:"DIR" predictor:"file" help:"Directory of the engine's native libraries, given to the worker."`
	Artifact     []string      `placeholder:"[NAME=]PATH" sep:"none" help:"File or directory of a suite's artifact, in place of the asset of that name. Without NAME= it is for the only one."`
	Only         []string      `placeholder:"NAME" help:"Measure these artifacts of the suites only."`
	Out          string        `placeholder:"DIR" predictor:"file" help:"Write result.json, junit.xml and report.html there."`
	Sign         string        `placeholder:"KEY" predictor:"file" help:"Ed25519 private key, PKCS#8 PEM: sign a certificate for each artifact that passed, into --out."`
	Performance  bool          `help:"Also measure speed, memory growth and idle load, where the suite says how."`
	EmbedTimeout time.Duration `placeholder:"DURATION" help:"Limit for one batch. Default: 2m."`
	Quiet        bool          `short:"q" help:"Show only what did not pass."`
}

// Help is shown under the flags.
func (runCmd) Help() string {
	return `Examples:
  certify run all-minilm-l6-v2 --worker bin/worker-onnx --out out
  certify run ./my-suite --worker bin/worker-onnx --only minilm-int8 --artifact model.onnx`
}

func (c runCmd) Run(ctx context.Context, con console) error {
	var key *certificate.Key
	if c.Sign != "" {
		var err error
		if key, err = signingKey(c.Sign, c.Out); err != nil {
			return err
		}
	}
	if err := canWriteTo(c.Out); err != nil {
		return err
	}
	loaded, err := loadSuites(c.Suites)
	if err != nil {
		return err
	}
	where, err := newLocator(c.Artifact, c.Only, loaded, con)
	if err != nil {
		return err
	}
	o := certify.Options{
		Worker: c.Worker, Only: c.Only, Performance: c.Performance, EmbedTimeout: c.EmbedTimeout, Libraries: c.EngineLib, Tool: buildinfo.String(),
		Locate:   func(name string) (string, error) { return where.find(ctx, name) },
		Observer: c.observer(con),
	}
	if o.WorkerArgs, err = engineLibArgs(c.EngineLib); err != nil {
		return err
	}
	r, err := certify.Run(ctx, loaded, o)
	if err != nil {
		return err
	}
	if c.Out != "" {
		if err := report.WriteFiles(c.Out, r); err != nil {
			return err
		}
	}
	if key != nil {
		if err := writeCertificates(ctx, c.Out, r, key); err != nil {
			return err
		}
	}
	if s := r.Verdict.ExitStatus(); s != certify.ExitPassed {
		return statusError(s)
	}
	return nil
}

// engineLibArgs are the worker's flags for the directory of its libraries, none
// where it is not told. The worker runs in another directory, so the path is
// absolute.
func engineLibArgs(dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	abs, err := filepath.Abs(dir)
	return []string{"--engine-lib", abs}, err
}

func (c runCmd) observer(con console) certify.Observer {
	if !c.Quiet {
		return report.NewProgress(con.err, func(suite string, r certify.ArtifactResult) { report.Table(con.out, suite, r) })
	}
	return report.NewProgress(nil, func(suite string, r certify.ArtifactResult) {
		if r.Verdict != certify.Passed {
			report.Table(con.out, suite, r)
		}
	})
}

// loadSuites reads each suite: a folder where the name has a slash, else one of
// those in this binary.
func loadSuites(names []string) ([]*suite.Suite, error) {
	var all []*suite.Suite
	for _, name := range names {
		var s *suite.Suite
		var err error
		if strings.ContainsAny(name, `/\`) {
			s, err = suite.Load(os.DirFS(name), filepath.ToSlash(filepath.Clean(name)))
		} else if s, err = suites.Load(name); err != nil {
			err = &certify.UsageError{Msg: err.Error()}
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// locator finds artifacts: where the command line says, else in the store of
// assets, which is opened only then.
type locator struct {
	named map[string]string
	con   console
	store *assets.Store
}

func newLocator(flags, only []string, of []*suite.Suite, con console) (*locator, error) {
	l := &locator{named: map[string]string{}, con: con}
	for _, f := range flags {
		name, path, ok := strings.Cut(f, "=")
		switch {
		case ok && !located(of, name):
			return nil, &certify.UsageError{Msg: fmt.Sprintf("--artifact %s: no suite given has the artifact %s: nothing would be read from there", f, name)}
		case ok:
			l.named[name] = path
		case len(only) == 1 && l.named[only[0]] == "":
			l.named[only[0]] = f
		default:
			return nil, &certify.UsageError{Msg: fmt.Sprintf("--artifact %s names no artifact of a suite: write NAME=%s, or choose one with --only", f, f)}
		}
	}
	return l, nil
}

// located says that a suite looks for the artifact or the judgements of that name.
func located(of []*suite.Suite, name string) bool {
	return slices.ContainsFunc(of, func(s *suite.Suite) bool {
		return s.People != nil && s.People.Asset == name || slices.ContainsFunc(s.Artifacts, func(a suite.Artifact) bool {
			return a.Name == name || slices.ContainsFunc(a.WrongLoads, func(w suite.WrongLoad) bool { return w.Artifact == name })
		})
	})
}

func (l *locator) find(ctx context.Context, name string) (string, error) {
	if path, ok := l.named[name]; ok {
		return path, nil
	}
	if l.store == nil {
		store, err := assets.Open(".", assets.NewProgress(l.con.err))
		if err != nil {
			return "", fmt.Errorf("%s is wanted: %w; or name its file with --artifact %s=PATH", name, err, name)
		}
		l.store = store
	}
	return l.store.Path(ctx, name)
}
