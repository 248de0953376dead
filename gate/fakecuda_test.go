package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// A simulated machine differs from a real one at the boundary of processes
// only. Kernels are compiled by the real compiler; nvidia-smi, ncu and the
// measuring program, which need a GPU, are the test binary under other names.

// A script tells the fake programs by variables what to pretend. They are not
// among those that gate passes to a child, so they travel as the last entry of
// PATH, which is.
const fakesOnPath = string(filepath.ListSeparator) + "/fakes/"

func packFakes() {
	values := url.Values{}
	for _, e := range os.Environ() {
		if name, value, _ := strings.Cut(e, "="); strings.HasPrefix(name, "FAKE_") {
			values.Set(name, value)
		}
	}
	os.Setenv("PATH", os.Getenv("PATH")+fakesOnPath+values.Encode())
}

func unpackFakes() {
	_, packed, _ := strings.Cut(os.Getenv("PATH"), fakesOnPath)
	values, err := url.ParseQuery(packed)
	if err != nil {
		panic(err)
	}
	for name := range values {
		os.Setenv(name, values.Get(name))
	}
}

// makeFakeCUDA fills root with links to the real toolkit and an nvcc that
// passes everything on, but for the measuring program.
func makeFakeCUDA(root string, tc *toolchain.Toolchain) error {
	entries, err := os.ReadDir(tc.Root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "bin" {
			continue
		}
		if err := os.Symlink(filepath.Join(tc.Root, e.Name()), filepath.Join(root, e.Name())); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"ptxas": tc.Ptxas, realNVCC: tc.NVCC} {
		if err := os.Symlink(to, filepath.Join(root, "bin", name)); err != nil {
			return err
		}
	}
	return becomeFake(filepath.Join(root, "bin", "nvcc"))
}

// fakes are the simulated programs by the names under which they are run. Each
// is the test binary itself: a confined program cannot reach another one.
var fakes = map[string]func(args []string) int{"nvcc": fakeNVCC, "ncu": fakeNCU, "compute-sanitizer": fakeSanitizer}

const harnessName = "gate-harness-"

// fakeOf is what a name stands for, nil for the tests themselves.
func fakeOf(name string) func([]string) int {
	if strings.HasPrefix(name, harnessName) {
		return fakeHarness
	}
	return fakes[name]
}

// becomeFake copies the test binary to a path whose name says what it is then.
// It is renamed into place, because a file that is open for writing cannot be
// run.
func becomeFake(path string) error {
	own, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer own.Close()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, own); err != nil {
		return err
	}
	return errors.Join(out.Close(), os.Rename(path+".new", path))
}

// realNVCC is the name of the real compiler, which the fake one calls and which lies beside it.
const realNVCC = "real-nvcc"

// fakeNVCC is nvcc, but for the sources of the measuring program: of those it
// makes an empty object, and for the program one that is fakeHarness.
func fakeNVCC(args []string) int {
	own, err := os.Executable()
	if err != nil {
		return failed(err)
	}
	real, err := filepath.EvalSymlinks(filepath.Join(filepath.Dir(own), realNVCC))
	if err != nil {
		return failed(err)
	}
	out := ""
	if i := slices.Index(args, "-o"); i >= 0 && i+1 < len(args) {
		out = args[i+1]
	}
	note("nvcc " + strings.Join(args, " "))
	switch {
	case slices.Contains(args, "-c") && strings.HasSuffix(out, ".cu.o"):
		return failed(os.WriteFile(out, nil, 0o644))
	case strings.HasPrefix(filepath.Base(out), harnessName):
		return failed(becomeFake(out))
	}
	return failed(syscall.Exec(real, append([]string{real}, args...), os.Environ()))
}

func failed(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// note adds a line to the file that $FAKE_LOG names, if any.
func note(line string) { noteIn("", line) }

// noteIn does the same for a file beside it.
func noteIn(suffix, line string) {
	path := os.Getenv("FAKE_LOG")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path+suffix, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintln(f, line)
}

// fakeUUID is one UUID for each script, so that scripts do not wait for each
// other's lock.
func fakeUUID(script string) string {
	sum := sha256.Sum256([]byte("gate test " + script))
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// fakeSMI answers as nvidia-smi: about the GPUs whose UUIDs are in $FAKE_GPU, and
// as on a machine without a driver where there are none.
func fakeSMI(args []string) int {
	all := os.Getenv("FAKE_GPU")
	if all == "" {
		fmt.Println("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.")
		return 9
	}
	note("nvidia-smi " + strings.Join(args, " "))
	uuids := strings.Split(all, ",")
	for i, uuid := range uuids {
		at := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "--query-gpu=") })
		if at < 0 {
			break
		}
		list := strings.TrimPrefix(args[at], "--query-gpu=")
		powerLimit := "700.00"
		if os.Getenv("FAKE_DEVICE") == "reset" {
			powerLimit = "[GPU requires reset]"
		}
		values := map[string]string{
			"index": fmt.Sprint(i), "uuid": uuid, "name": os.Getenv("FAKE_GPU_NAME"), "driver_version": "580.159.03",
			"pci.bus_id": fmt.Sprintf("00000000:%02X:00.0", 15+i), "compute_cap": "9.0", "mig.mode.current": "Disabled", "persistence_mode": "Enabled",
			"power.limit": powerLimit, "power.draw": "80.11", "temperature.gpu": "35", "clocks.sm": "345", "clocks.mem": "3201",
			"clocks.max.sm": "1980", "clocks.max.mem": "3201", "memory.total": "143771", "memory.used": "1", "utilization.gpu": "0",
			"clocks_event_reasons.active": "0x0000000000000001",
		}
		var cells []string
		for _, field := range strings.Split(list, ",") {
			value, ok := values[field]
			if !ok {
				fmt.Printf("Field \"%s\" is not a valid field to query.\n\n", field)
				return 2
			}
			cells = append(cells, value)
		}
		fmt.Println(strings.Join(cells, ", "))
	}
	if others := os.Getenv("FAKE_GPU_PROCESS"); others != "" && strings.HasPrefix(args[0], "--query-compute-apps") {
		fmt.Printf("%s, 4711, %s, 512\n", uuids[len(uuids)-1], others)
	}
	return 0
}
