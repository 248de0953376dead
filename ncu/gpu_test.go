//go:build gpu

package ncu

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The tests of this file need a Hopper GPU, nvcc and ncu, and permission to
// read the counters: go test -tags gpu -run GPU -v ./ncu
//
// NVCC and NCU name the programs where they are not on PATH. GATE_RECORD names
// a folder in which the recordings are kept.

func tool(t *testing.T, env, name string) string {
	t.Helper()
	if p := os.Getenv(env); p != "" {
		return p
	}
	p, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func command(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s\n%s", name, strings.Join(args, " "), err, out.Bytes(), errs.Bytes())
	}
	return out.Bytes()
}

// probe builds the program with one kernel for each thing to be told apart.
func probe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "probe")
	command(t, tool(t, "NVCC", "nvcc"), "-O3", "-arch=sm_90a", "-o", path, "testdata/gpu/probe.cu")
	return path
}

func recordDir(t *testing.T) string {
	if dir := os.Getenv("GATE_RECORD"); dir != "" {
		return dir
	}
	return t.TempDir()
}

// TestGPUCatalogue asks ncu for every counter of the catalogue by name, reads
// each metric, and holds those against what the kernels do.
func TestGPUCatalogue(t *testing.T) {
	var names []string
	for _, m := range Metrics() {
		names = append(names, m.Name)
	}
	counters, unavailable := Counters("9.0", names...)
	out := filepath.Join(recordDir(t), "probe.raw.csv")
	command(t, tool(t, "NCU", "ncu"), "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
		"--log-file", out, "--metrics", strings.Join(counters, ","), probe(t))
	rep, err := readPath(t, out)
	if err != nil {
		t.Fatal(err)
	}
	checkLaunches(t, rep, names, unavailable)
}

// TestGPUReport compares every value of a report with ncu's own raw page of it,
// and the time that both take.
func TestGPUReport(t *testing.T) {
	ncu := tool(t, "NCU", "ncu")
	path := filepath.Join(recordDir(t), "probe.ncu-rep")
	command(t, ncu, "--set", "full", "--clock-control", "none", "--force-overwrite", "--export", path, probe(t))
	start := time.Now()
	page := command(t, ncu, "--import", path, "--csv", "--page", "raw", "--print-units", "base")
	theirs := time.Since(start)
	start = time.Now()
	rep, err := readPath(t, path)
	if err != nil {
		t.Fatal(err)
	}
	ours := time.Since(start)
	csv, err := Read(bytes.NewReader(page), "probe.raw.csv")
	if err != nil {
		t.Fatal(err)
	}
	equal, extra := compareWithNcu(t, rep, csv)
	compared := 0
	for _, l := range csv.Launches {
		compared += len(l.Names())
	}
	if equal != compared || compared == 0 {
		t.Errorf("%d of %d values equal", equal, compared)
	}
	t.Logf("%d of %d values equal, %d more in the report; ncu took %v, ReadReport %v", equal, compared, extra, theirs, ours)
}
