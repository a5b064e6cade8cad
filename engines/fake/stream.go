package fake

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// Stream stands between a worker's socket and the protocol, and breaks the next
// write once a fault has armed it. The zero value breaks nothing.
type Stream struct {
	mu    sync.Mutex
	fault string
	bytes int
	pause time.Duration
}

// Wrap puts the stream before a connection.
func (s *Stream) Wrap(c net.Conn) net.Conn { return &brokenConn{Conn: c, stream: s} }

func (s *Stream) arm(fault string, n int, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.bytes, s.pause = fault, n, pause
}

func (s *Stream) armed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault != ""
}

func (s *Stream) disarm() (fault string, n int, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fault, s.fault = s.fault, ""
	return fault, s.bytes, s.pause
}

type brokenConn struct {
	net.Conn
	stream *Stream
}

func (c *brokenConn) Write(p []byte) (int, error) {
	fault, n, pause := c.stream.disarm()
	switch fault {
	case "garbage":
		return c.lie(p, bytes.Repeat([]byte{0xA5}, n))
	case "short_frame":
		defer c.Close()
		return c.lie(p, p[:len(p)/2])
	case "eof":
		return len(p), c.Close()
	case "drip":
		for i := range p {
			if _, err := c.Conn.Write(p[i : i+1]); err != nil {
				return i, err
			}
			time.Sleep(pause)
		}
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// WriteBuffers keeps the vectored write of a sound connection, and gives a broken
// one the message in one piece.
func (c *brokenConn) WriteBuffers(b *net.Buffers) (int64, error) {
	if !c.stream.armed() {
		return b.WriteTo(c.Conn)
	}
	n, err := c.Write(bytes.Join(*b, nil))
	return int64(n), err
}

// lie writes other bytes and reports p as written.
func (c *brokenConn) lie(p, other []byte) (int, error) {
	_, err := c.Conn.Write(other)
	return len(p), err
}
