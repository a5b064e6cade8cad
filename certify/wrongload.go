package certify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/synapse-module/workers/certify/certificate"
	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/machine"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

// caught notes a control.
func (m *measurement) caught(c gate.Control) { m.result.Controls = append(m.result.Controls, c) }

// judgement asks the model that is loaded as m.ref and holds its answers to the
// gates, for the control of a name.
type judgement func(ctx context.Context, name string) ([]gate.Check, error)

// wrongLoads loads the model in each way that must not pass, and has judge ask
// the model so loaded, which is m.ref for the while. A refusal of either is as
// good as a failed gate.
func (m *measurement) wrongLoads(ctx context.Context, judge judgement) error {
	if f := m.artifact.FlippedByte; f != nil {
		if err := m.flippedByte(ctx, *f, judge); err != nil {
			return err
		}
	}
	for _, w := range m.artifact.WrongLoads {
		if why := hidden(w.OnlyWhere); why != "" {
			m.caught(gate.HiddenControl(w.Name, why))
			continue
		}
		q := host.LoadRequest{Path: m.path, Digest: m.artifact.Digest, Format: m.artifact.Format, Config: configOf(m.artifact.RuntimeConfig)}
		if w.RuntimeConfig != nil {
			q.Config = w.RuntimeConfig
		}
		if w.Artifact != "" {
			q.Path, q.Digest = m.others[w.Artifact], w.Digest
		}
		if err := m.wrongLoad(ctx, w.Name, q, judge); err != nil {
			return err
		}
	}
	return nil
}

// hidden says why a fault cannot show on this processor; empty where it can.
func hidden(where *suite.OnlyWhere) string {
	if where == nil {
		return ""
	}
	if runtime.GOARCH != where.Arch {
		return fmt.Sprintf("this processor is %s, the fault is of %s", runtime.GOARCH, where.Arch)
	}
	for _, extension := range where.Without {
		if machine.Has(extension) {
			return fmt.Sprintf("this processor has %s, which hides the fault", extension)
		}
	}
	return ""
}

func (m *measurement) wrongLoad(ctx context.Context, name string, q host.LoadRequest, judge judgement) error {
	loaded, err := m.worker.Load(ctx, q)
	if err != nil {
		return m.refused(name, err)
	}
	faithful := m.ref
	m.ref = loaded.Ref
	checks, err := judge(ctx, name)
	m.ref = faithful
	if err == nil {
		m.caught(gate.NewControl(name, checks))
	} else if err = m.refused(name, err); err != nil {
		return err
	}
	return m.worker.Unload(ctx, loaded.Ref)
}

// refused notes a control that the worker refused to go along with. Any other
// error is returned.
func (m *measurement) refused(name string, err error) error {
	if fatal(err) {
		return err
	}
	m.caught(gate.RefusedControl(name, err))
	return nil
}

// flippedByte loads a copy of the artifact with one byte changed, under a digest
// that fits: whoever checks nothing but digests would trust it.
func (m *measurement) flippedByte(ctx context.Context, f suite.FlippedByte, judge judgement) error {
	const name = "flipped_byte"
	dir, err := os.MkdirTemp("", "certify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, filepath.Base(m.path))
	digest, err := flippedCopy(path, m.path, f)
	if err != nil {
		return fmt.Errorf("control %s: %w", name, err)
	}
	return m.wrongLoad(ctx, name, host.LoadRequest{Path: path, Digest: digest, Format: m.artifact.Format, Config: configOf(m.artifact.RuntimeConfig)}, judge)
}

// flippedCopy copies a file or a directory with one byte changed, and returns its
// digest.
func flippedCopy(to, from string, f suite.FlippedByte) (protocol.Digest, error) {
	changed := to
	var err error
	if f.File == "" {
		err = copyFile(to, from)
	} else {
		changed = filepath.Join(to, filepath.FromSlash(f.File))
		err = os.CopyFS(to, os.DirFS(from))
	}
	if err == nil {
		err = flip(changed, f)
	}
	if err != nil {
		return "", err
	}
	return certificate.DigestOf(to)
}

func copyFile(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// flip inverts the bits of one byte of a file.
func flip(path string, f suite.FlippedByte) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	var b [1]byte
	if _, err = file.ReadAt(b[:], f.Offset); err != nil {
		err = fmt.Errorf("%s has no byte %d: %w", path, f.Offset, err)
	} else {
		b[0] ^= byte(f.Mask)
		_, err = file.WriteAt(b[:], f.Offset)
	}
	return errors.Join(err, file.Close())
}

// fatal says that an error is no answer of the worker.
func fatal(err error) bool {
	var refusal *protocol.Error
	return err != nil && !errors.As(err, &refusal)
}
