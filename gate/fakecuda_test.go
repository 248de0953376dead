package main

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"os/exec"
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
	if err := os.Symlink(tc.Ptxas, filepath.Join(root, "bin", "ptxas")); err != nil {
		return err
	}
	return writeProgram(filepath.Join(root, "bin", "nvcc"), lookFake("fakenvcc"), tc.NVCC)
}

// lookFake is the path of a program that testscript.Main put on PATH.
func lookFake(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		panic(err)
	}
	return path
}

// writeProgram makes a program that runs another with these words before its
// own arguments. It is renamed into place, because a file that is open for
// writing cannot be run.
func writeProgram(path string, words ...string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text := "#!/bin/sh\nexec '" + strings.Join(words, "' '") + "' \"$@\"\n"
	if err := os.WriteFile(path+".new", []byte(text), 0o755); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// fakeNVCC is nvcc, but for the sources of the measuring program: of those it
// makes an empty object, and for the program one that runs fakeharness.
// args[0] is the real compiler.
func fakeNVCC(args []string) int {
	real, args := args[0], args[1:]
	out := ""
	if i := slices.Index(args, "-o"); i >= 0 && i+1 < len(args) {
		out = args[i+1]
	}
	note("nvcc " + strings.Join(args, " "))
	switch {
	case slices.Contains(args, "-c") && strings.HasSuffix(out, ".cu.o"):
		return failed(os.WriteFile(out, nil, 0o644))
	case strings.HasPrefix(filepath.Base(out), "gate-harness-"):
		return failed(writeProgram(out, lookFake("fakeharness")))
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

// fakeSMI answers as nvidia-smi: about one GPU where $FAKE_GPU is its UUID, and
// as on a machine without a driver otherwise.
func fakeSMI(args []string) int {
	uuid := os.Getenv("FAKE_GPU")
	if uuid == "" {
		fmt.Println("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.")
		return 9
	}
	note("nvidia-smi " + strings.Join(args, " "))
	for _, a := range args {
		list, ok := strings.CutPrefix(a, "--query-gpu=")
		if !ok {
			continue
		}
		powerLimit := "700.00"
		if os.Getenv("FAKE_DEVICE") == "reset" {
			powerLimit = "[GPU requires reset]"
		}
		values := map[string]string{
			"index": "0", "uuid": uuid, "name": os.Getenv("FAKE_GPU_NAME"), "driver_version": "580.159.03",
			"pci.bus_id": "00000000:0F:00.0", "compute_cap": "9.0", "mig.mode.current": "Disabled", "persistence_mode": "Enabled",
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
		fmt.Printf("%s, 4711, %s, 512\n", uuid, others)
	}
	return 0
}
