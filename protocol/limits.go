package protocol

// Version is the protocol's version byte, sent as "v" in HELLO and HELLO_ACK.
const Version = 1

const (
	// HandshakeMaxFrame bounds every frame until HELLO_ACK: the peer is not yet
	// known, and a HELLO is a few hundred bytes.
	HandshakeMaxFrame = 64 << 10

	// MinMaxFrame is the least legal "max_frame": below it a HELLO might not fit.
	MinMaxFrame = 64 << 10

	// MaxMaxFrame is the largest legal "max_frame": above it one frame would be
	// most of a machine's memory.
	MaxMaxFrame = 1 << 30

	// DefaultMaxFrame is what both sides offer unless told otherwise: 40,000
	// rows of 384 f32, well over any batch that a scheduler makes.
	DefaultMaxFrame = 64 << 20

	// MaxIDBytes bounds a req_id or an item's id, as written on the wire without
	// the quotes of a string: it is echoed, so it must not become a payload.
	MaxIDBytes = 128

	// MaxMsgBytes bounds the text of an ERR: with every byte of it escaped in
	// JSON (six for one) it still fits the smallest frame limit.
	MaxMsgBytes = 8 << 10

	// MaxRawFrames bounds "raw_frames" of a message of unknown type: an older
	// worker reads them only to stay in step.
	MaxRawFrames = 16
)

const (
	// growStep is the first piece of memory taken for a frame. Memory doubles
	// from here as bytes arrive, so an announced length alone costs nothing.
	growStep = 64 << 10

	// readBuffer holds a whole small request (header, ids) so that it costs one
	// system call; a tensor larger than it is read straight into its frame.
	readBuffer = 16 << 10

	// MaxRetainedBuffer is the largest frame buffer that is kept for the next
	// frame: one huge batch must not pin its memory for the life of a worker.
	MaxRetainedBuffer = 16 << 20
)

// NegotiateMaxFrame is the frame limit after HELLO_ACK: the smaller of what the
// two sides offer. Either offer outside [MinMaxFrame, MaxMaxFrame] is a
// [ViolationError].
func NegotiateMaxFrame(worker, module uint32) (uint32, error) {
	for _, offer := range []struct {
		side string
		n    uint32
	}{{"worker", worker}, {"module", module}} {
		if offer.n < MinMaxFrame || offer.n > MaxMaxFrame {
			return 0, Violation("the %s's max_frame is %d bytes, legal is %d to %d", offer.side, offer.n, MinMaxFrame, MaxMaxFrame)
		}
	}
	return min(worker, module), nil
}
