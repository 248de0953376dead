package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestOrderOfSources(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name, env string
		nvml      error // what NVML answers
		asked     string
		err       error
	}{
		{"NVML answers", "", nil, "nvml", nil},
		{"NVML is unavailable", "", fmt.Errorf("%w: no library", errNVMLUnavailable), "nvml smi", nil},
		{"NVML has no driver", "", ErrNoDriver, "nvml", ErrNoDriver},
		{"NVML sees no GPU", "", ErrNoDevice, "nvml", ErrNoDevice},
		{"NVML fails", "", broken, "nvml", broken},
		{"NVML is not to be asked", "off", nil, "smi", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(EnvNVML, c.env)
			var asked []string
			got, err := firstAnswer(context.Background(),
				func(context.Context) (string, error) { asked = append(asked, "nvml"); return "nvml", c.nvml },
				func(context.Context) (string, error) { asked = append(asked, "smi"); return "smi", nil })
			if strings.Join(asked, " ") != c.asked || !errors.Is(err, c.err) {
				t.Fatalf("asked %v, error %v", asked, err)
			}
			if err == nil && got != asked[len(asked)-1] {
				t.Errorf("got the answer of %s", got)
			}
		})
	}
}

func TestOddSourceIsRefused(t *testing.T) {
	fakeSMI(t, say(goodRow))
	t.Setenv(EnvNVML, "no\x1b")
	list, err := List(context.Background())
	if list != nil || err == nil || !strings.Contains(err.Error(), `GATE_NVML is "no\u001b": it can be off, or nothing`) {
		t.Errorf("got %v, %v", list, err)
	}
}

// Where NVML is not to be had, built with cgo or without, nvidia-smi answers.
func TestFallback(t *testing.T) {
	fakeSMI(t, say(goodRow))
	t.Setenv(EnvNVML, "")
	if _, err := nvmlDevices(context.Background()); !errors.Is(err, errNVMLUnavailable) {
		t.Skipf("NVML is here: %v", err)
	}
	list, err := List(context.Background())
	if err != nil || len(list) != 1 || list[0].Source != SMI {
		t.Errorf("got %+v, %v", list, err)
	}
	fakeSMI(t, say("GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f, 4711, a, 3"))
	t.Setenv(EnvNVML, "")
	if processes, err := Processes(context.Background()); err != nil || len(processes) != 1 {
		t.Errorf("got %+v, %v", processes, err)
	}
}

func TestReasons(t *testing.T) {
	for _, c := range []struct {
		mask uint64
		want string
	}{
		{0, ""},
		{0x1, "gpu_idle"},
		{0x2, "app_clocks"},
		{0x4, "sw_power_cap"},
		{0x8, "hw_slowdown"},
		{0x10, "sync_boost"},
		{0x20, "sw_thermal"},
		{0x40, "hw_thermal"},
		{0x80, "hw_power_brake"},
		{0x100, "display_clock"},
		{0x48, "hw_slowdown hw_thermal"},
		{1 << 63, "unnamed_0x8000000000000000"},
	} {
		got := reasons(c.mask)
		if strings.Join(got.Active, " ") != c.want || !got.Known {
			t.Errorf("%#x: %+v, want %s", c.mask, got, c.want)
		}
		text, err := parseReasons(fmt.Sprintf("0x%016x", c.mask))
		if err != nil || !slices.Equal(text.Active, got.Active) {
			t.Errorf("%#x: nvidia-smi's text gives %+v, %v", c.mask, text, err)
		}
	}
}

// The tool builds and starts with cgo and without, and holds NVML's binding
// only with it.
func TestBuildsWithAndWithoutCgo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the tool twice")
	}
	for _, cgo := range []string{"0", "1"} {
		t.Run("CGO_ENABLED="+cgo, func(t *testing.T) {
			run := func(name string, args ...string) string {
				t.Helper()
				cmd := exec.Command(name, args...)
				cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s %v: %v\n%s", name, args, err, out)
				}
				return string(out)
			}
			if cgo == "1" {
				if _, err := exec.LookPath(strings.Fields(run("go", "env", "CC"))[0]); err != nil {
					t.Skip("no C compiler")
				}
			}
			gate := filepath.Join(t.TempDir(), "gate")
			run("go", "build", "-buildvcs=false", "-o", gate, "../..")
			run(gate, "doctor", "--help")
			if has := strings.Contains(run("go", "list", "-deps", "../.."), "github.com/NVIDIA/go-nvml/pkg/nvml\n"); has != (cgo == "1") {
				t.Errorf("NVML's binding is in it: %v", has)
			}
		})
	}
}
