// Command go-module is a whole small module in Go: it keeps a pool of one
// engine's workers, embeds rows of token ids, and does what a module should with
// each way in which that can fail.
//
//	go run ./examples/go-module bin/worker-onnx model.onnx onnx '{"pooling":"mean"}' 101,7592,2088,102
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/host/certified"
	"github.com/synapse-module/workers/protocol"
)

const (
	// attempts of one request: a second one, on a fresh worker, forgives a fault
	// of the moment. What crashes again is left to the pool's crash budget.
	attempts = 2

	// requestDeadline is the module's own patience; a scheduler knows better.
	requestDeadline = 30 * time.Second

	// closeDeadline is how long workers may take to free their models.
	closeDeadline = 10 * time.Second
)

func main() {
	log.SetFlags(0)
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(explain(err))
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(args) != 5 {
		return errors.New("usage: go-module WORKER MODEL FORMAT CONFIG IDS")
	}
	worker, path, format, config := args[0], args[1], args[2], args[3]
	row, err := parseIDs(args[4])
	if err != nil {
		return err
	}
	digest, err := digestOf(path)
	if err != nil {
		return err
	}
	var admit func(context.Context, host.Admission) error
	if folder := os.Getenv(envCertificates); folder != "" {
		if admit, err = onlyCertified(folder, os.Getenv(envKey)); err != nil {
			return err
		}
	}
	pool, err := host.NewPool(host.PoolSpec{
		Worker: host.Spec{Path: worker, Admit: admit, Log: func(l host.LogLine) { log.Printf("%s: %s", l.Worker, l.Text) }},
		Size:   2,
	})
	if err != nil {
		return err
	}
	defer closePool(pool)

	model := host.LoadRequest{Path: path, Digest: digest, Format: format, Config: json.RawMessage(config)}
	vectors, err := embed(ctx, pool, model, [][]int32{row})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(vectors.Row(0))
}

// embed tries again on another worker where the first one crashed.
func embed(ctx context.Context, pool *host.Pool, model host.LoadRequest, rows [][]int32) (host.Vectors, error) {
	var crash *host.EngineCrashed
	for range attempts {
		vectors, err := embedOnce(ctx, pool, model, rows)
		if !errors.As(err, &crash) {
			return vectors, err
		}
		log.Print(crash) // its LogTail has been logged line by line, see Spec.Log
	}
	return host.Vectors{}, crash
}

func embedOnce(ctx context.Context, pool *host.Pool, model host.LoadRequest, rows [][]int32) (host.Vectors, error) {
	ctx, cancel := context.WithTimeout(ctx, requestDeadline)
	defer cancel()
	lease, err := pool.Acquire(ctx, model)
	if err != nil {
		return host.Vectors{}, err
	}
	defer lease.Release()
	return lease.Embed(ctx, host.EmbedRequest{Normalize: true, Rows: rows})
}

// explain says what a module would do about each kind of error.
func explain(err error) string {
	var refusal *protocol.Error
	var crash *host.EngineCrashed
	var quarantined *host.Quarantined
	var unstartable *host.Unstartable
	var uncertified *certified.Uncertified
	switch {
	case errors.As(err, &quarantined):
		return fmt.Sprintf("serve without this model until %s: %v", quarantined.Until.Format(time.RFC3339), err)
	case errors.As(err, &refusal):
		return fmt.Sprintf("the request is at fault, a second try is of no use: %v", err)
	case errors.As(err, &crash):
		return fmt.Sprintf("the engine cannot do this here: %v", err)
	case errors.As(err, &unstartable):
		return fmt.Sprintf("the installation is at fault: %v", err)
	case errors.As(err, &uncertified):
		return fmt.Sprintf("nobody has certified this here: %v", err)
	}
	return err.Error()
}

// digestOf hashes the model. A module takes the digest from its manifest instead,
// so that a file that was changed on the way is refused.
func digestOf(path string) (protocol.Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return protocol.FileDigest(f)
}

func parseIDs(text string) ([]int32, error) {
	var ids []int32
	for word := range strings.SplitSeq(text, ",") {
		id, err := strconv.ParseInt(word, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("token ids are numbers with commas between them: %w", err)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}

func closePool(pool *host.Pool) {
	ctx, cancel := context.WithTimeout(context.Background(), closeDeadline)
	defer cancel()
	if err := pool.Close(ctx); err != nil {
		log.Printf("workers were killed: %v", err)
	}
}
