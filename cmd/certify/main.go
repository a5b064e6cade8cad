// Command certify holds workers to independent references.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/posener/complete"
	"github.com/willabides/kongplete"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/conformance"
	"github.com/synapse-module/workers/certify/report"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/certify/suites"
	"github.com/synapse-module/workers/internal/buildinfo"
)

const description = `Hold a worker, on this machine and with these models, to an independent reference.

Exit status: 0 passed, 1 a gate failed, 2 the command line or a suite is at fault,
3 no verdict could be reached.`

type cli struct {
	Run      runCmd                       `cmd:"" help:"Measure a worker against suites."`
	Protocol protocolCmd                  `cmd:"" help:"Hold a worker, in any language, to the wire."`
	Report   reportCmd                    `cmd:"" help:"Show a result of before."`
	Verify   verifyCmd                    `cmd:"" help:"Check a certificate against what is here."`
	Compare  compareCmd                   `cmd:"" help:"Hold one result to another."`
	Embed    embedCmd                     `cmd:"" help:"Show the vector of a text."`
	Record   recordCmd                    `cmd:"" help:"Make reference vectors with a trusted worker."`
	Complete kongplete.InstallCompletions `cmd:"" name:"completion" help:"Print the line that makes your shell complete certify's commands: put it into the shell's start-up file."`
	Version  kong.VersionFlag             `help:"Print the version and exit."`
}

// console is where a command writes.
type console struct {
	out io.Writer // what was asked for
	err io.Writer // progress and errors
}

func main() {
	os.Exit(run(os.Args[1:], console{os.Stdout, os.Stderr}))
}

// run returns the exit status.
func run(args []string, c console) int {
	useColour(c)
	var commands cli
	exited := -1
	parser, err := kong.New(&commands, kong.Name("certify"), kong.Description(description),
		kong.Writers(c.out, c.err), kong.Vars{"version": buildinfo.String(), "suites": strings.Join(suites.Names(), ", ")}, kong.UsageOnError(),
		kong.Exit(func(status int) { exited = status }))
	if err != nil {
		panic(err) // the struct above is wrong
	}
	kongplete.Complete(parser, kongplete.WithPredictor("file", complete.PredictFiles("*")),
		kongplete.WithPredictor("suite", complete.PredictOr(complete.PredictSet(suites.Names()...), complete.PredictDirs("*"))))
	if exited >= 0 { // the shell asked
		return exited
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // --help, --version
		return exited
	}
	if err != nil {
		fmt.Fprintf(c.err, "certify: %v (see --help)\n", err)
		return certify.ExitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // what does not end by itself, a second signal ends
	parsed.BindTo(ctx, (*context.Context)(nil))
	return status(c, parsed.Run(c))
}

// statusError carries an exit status of which everything has been said.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// status says an error and chooses its exit status.
func status(c console, err error) int {
	var said statusError
	if err == nil {
		return certify.ExitPassed
	}
	if errors.As(err, &said) {
		return int(said)
	}
	fmt.Fprintf(c.err, "certify: %v\n", err)
	var early *conformance.EarlyEnd
	if errors.As(err, &early) && early.LogTail != "" {
		fmt.Fprintf(c.err, "the end of the worker's log:\n%s\n", strings.TrimRight(early.LogTail, "\n"))
	}
	var usage *certify.UsageError
	var fault *suite.Error
	if errors.As(err, &usage) || errors.As(err, &fault) {
		return certify.ExitUsage
	}
	return certify.ExitUnmeasured
}

// useColour sets the process-wide switch: colour only where a person looks, and
// not where NO_COLOR asks for none.
func useColour(c console) {
	if os.Getenv("NO_COLOR") == "" && report.IsTerminal(c.out) {
		text.EnableColors()
		return
	}
	text.DisableColors()
}
