package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kernelgate/gate/gate/internal/printable"
)

// A Source is who told the state of a GPU.
type Source string

// The sources, in the order in which they are asked.
const (
	NVML Source = "nvml"
	SMI  Source = "nvidia-smi"
)

// EnvNVML names the environment variable that chooses the source: "off" asks
// nvidia-smi alone, unset or empty asks NVML first. It is for machines where
// NVML hangs, and for those who put a program of their own in the place of
// nvidia-smi.
const EnvNVML = "GATE_NVML"

// errNVMLUnavailable says that NVML cannot be asked, which says nothing about
// the GPUs: gate was built without cgo, the library is not here, or it is too
// old to know every function that is needed.
var errNVMLUnavailable = errors.New("NVML is unavailable")

// firstAnswer asks NVML and, only where that is unavailable, nvidia-smi. An
// error of NVML is an answer: nvidia-smi asks the same library.
func firstAnswer[T any](ctx context.Context, nvml, smi func(context.Context) (T, error)) (T, error) {
	switch value := os.Getenv(EnvNVML); value {
	case "off":
		return smi(ctx)
	case "":
	default:
		var none T
		return none, fmt.Errorf("%s is %s: it can be off, or nothing", EnvNVML, printable.Quote(value, 40))
	}
	got, err := nvml(ctx)
	if errors.Is(err, errNVMLUnavailable) {
		return smi(ctx)
	}
	return got, err
}
