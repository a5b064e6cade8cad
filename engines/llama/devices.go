package llama

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/synapse-module/workers/engines/llama/internal/capi"
	"github.com/synapse-module/workers/workerkit"
)

// devices are what a model's layers are spread over, besides the CPU: the RPC
// servers that it names, and the GPUs of this machine. The list is always given
// to the library, because its own also has the servers of other models.
func (e *engine) devices(s settings) ([]capi.Device, error) {
	var list []capi.Device
	if len(s.rpcServers) > 0 && !e.lib.HasRPC() {
		return nil, workerkit.ConfigInvalid("runtime_config.%s: llama.cpp's libraries here are built without RPC; `make llama-rpc` builds them with it", optRPCServers)
	}
	for _, server := range s.rpcServers {
		// A server that has this worker for a client answers no second greeting.
		check := greetRPC
		if e.rpcClients[server] {
			check = reachRPC
		}
		if err := check(server); err != nil {
			return nil, workerkit.ConfigInvalid("runtime_config.%s: %.128q %v", optRPCServers, server, err)
		}
		// A server that goes away under a computation ends the process. Let it be by
		// llama.cpp's abort, which says why, and not by the signal of its write.
		signal.Ignore(syscall.SIGPIPE)
		e.rpcClients[server] = true
		found := e.lib.RPCDevices(server)
		if len(found) == 0 {
			return nil, workerkit.ConfigInvalid("runtime_config.%s: %.128q offers no device", optRPCServers, server)
		}
		list = append(list, found...)
	}
	gpus := e.lib.LocalGPUs()
	switch {
	case s.gpuLayers > 0 && len(gpus)+len(list) == 0:
		return nil, workerkit.ConfigInvalid("runtime_config.%s is %d, but llama.cpp finds no GPU here (backends: %s); allowed is 0", optGPULayers, s.gpuLayers, strings.Join(e.lib.Backends, ", "))
	case s.mainGPU >= 0 && int(s.mainGPU) >= len(gpus):
		return nil, workerkit.ConfigInvalid("runtime_config.%s is %d, but llama.cpp finds %d GPUs here", optMainGPU, s.mainGPU, len(gpus))
	case s.gpuLayers == 0:
		gpus = nil // else large products would still be computed there
	case s.mainGPU >= 0:
		gpus = gpus[s.mainGPU : s.mainGPU+1]
	}
	return append(list, gpus...), nil
}

// llama.cpp's RPC protocol, as far as saying hello.
const (
	rpcHello     = 14 // RPC_CMD_HELLO, fixed for all versions
	rpcCaps      = 24 // RPC_CONN_CAPS_SIZE: bytes of what a side can do, none here
	rpcMajor     = 7  // RPC_PROTO_MAJOR_VERSION of the libraries that this engine takes
	rpcHelloSize = 4 + rpcCaps

	// rpcGreeting bounds the greeting: a server computes for one client at a time,
	// and one that is busy with another does not answer before it is done.
	rpcGreeting = 10 * time.Second
)

func dialRPC(endpoint string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", endpoint, rpcGreeting)
	if err != nil {
		return nil, unreachable(err)
	}
	return conn, nil
}

// unreachable says why a server cannot be reached, and what to do where the worker
// itself is why.
func unreachable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("cannot be reached: the worker's sandbox opens no sockets, start it with --sandbox off: %w", err)
	}
	return fmt.Errorf("cannot be reached: %w", err)
}

// reachRPC sees whether anything listens at HOST:PORT.
func reachRPC(endpoint string) error {
	conn, err := dialRPC(endpoint)
	if err != nil {
		return err
	}
	return conn.Close()
}

// greetRPC sees whether an RPC server of the right version listens at HOST:PORT.
// The library itself would end the process if not.
func greetRPC(endpoint string) error {
	if _, _, err := net.SplitHostPort(endpoint); err != nil {
		return fmt.Errorf("is not HOST:PORT")
	}
	conn, err := dialRPC(endpoint)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(rpcGreeting)); err != nil {
		return err
	}
	hello := binary.LittleEndian.AppendUint64([]byte{rpcHello}, rpcCaps)
	if _, err := conn.Write(append(hello, make([]byte, rpcCaps)...)); err != nil {
		return fmt.Errorf("does not take a greeting: %w", err)
	}
	answer := make([]byte, 8+rpcHelloSize)
	if _, err := io.ReadFull(conn, answer); err != nil || binary.LittleEndian.Uint64(answer) != rpcHelloSize {
		return fmt.Errorf("does not answer as an RPC server of llama.cpp, or is busy with another client")
	}
	if major := answer[8]; major != rpcMajor {
		return fmt.Errorf("speaks RPC version %d, wanted is %d: run the ggml-rpc-server that was built with these libraries", major, rpcMajor)
	}
	return nil
}
