package bridge

import "github.com/synapse-module/workers/engines/coreml/internal/objc"

// DeviceKind is what kind of device an operation is planned for.
type DeviceKind int

// The kinds of device. UnknownDevice is one of a class that is not known here, or
// none where Core ML should have named one.
const (
	UnknownDevice DeviceKind = iota
	NeuralEngine
	GPU
	CPU
)

func (k DeviceKind) String() string {
	return [...]string{"unknown", "neural_engine", "gpu", "cpu"}[k]
}

var deviceClasses = map[DeviceKind]string{
	NeuralEngine: "MLNeuralEngineComputeDevice",
	GPU:          "MLGPUComputeDevice",
	CPU:          "MLCPUComputeDevice",
}

func (b *Bridge) kind(device objc.ID) DeviceKind {
	for kind, class := range b.deviceClass {
		if class != 0 && b.m.IsKindOf.to(device, class) {
			return kind
		}
	}
	return UnknownDevice
}

// Device is a device that Core ML can use.
type Device struct {
	Kind  DeviceKind
	Cores int // of the Neural Engine; 0 for the others
}

// Devices lists the machine's devices; nil on a macOS that does not tell.
func (b *Bridge) Devices() []Device {
	if Older(b.system.Version, devicesSince) {
		return nil
	}
	var devices []Device
	_ = b.scope(func() error {
		for _, d := range b.objects(b.m.AvailableDevices.toClass()) {
			device := Device{Kind: b.kind(d)}
			if device.Kind == NeuralEngine {
				device.Cores = int(b.m.CoreCount.to(d))
			}
			devices = append(devices, device)
		}
		return nil
	})
	return devices
}
