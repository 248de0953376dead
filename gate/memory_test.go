package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const (
	// mostReport is what showing any verdict may take, in KiB: 24 times the largest
	// verdict that is read.
	mostReport = 3 << 19
	// mostRefused is what refusing a verdict may take, in KiB, however long it is.
	mostRefused = 3 << 18
)

// kernelOf is one kernel of a verdict with its findings.
func kernelOf(n int, findings string) string {
	return fmt.Sprintf(`{"name":"op/k%d","file":"k","arch":"sm_90","state":"changed","status":"fail","identity":{"code_id":"a","host_id":"b"},"findings":[%s]}`, n, findings)
}

// verdictOf is a verdict of so many equal kernels, all of which failed.
func verdictOf(kernels int, findings string) []byte {
	var all bytes.Buffer
	fmt.Fprintf(&all, `{"schema":"gate/verdict/v1","status":"fail","policy":"p","judged_by":"head","head":{},"base":{},"machines":[],"reproduce":"r",`+
		`"counts":{"kernels":%[1]d,"passed":0,"failed":%[1]d,"inconclusive":0,"unchanged":0,"changed":%[1]d,"new":0,"gone":0,"measured":0,"reused":0,"missing":0},"kernels":[`, kernels)
	for i := range kernels {
		if i > 0 {
			all.WriteByte(',')
		}
		all.WriteString(kernelOf(i, findings))
	}
	all.WriteString("]}")
	return all.Bytes()
}

func repeated(finding string, n int) string {
	return strings.TrimSuffix(strings.Repeat(finding+",", n), ",")
}

// TestReportMemory: what gate report takes is bounded for the largest verdicts
// that it reads, of each shape, and for what is larger.
func TestReportMemory(t *testing.T) {
	takesLong(t)
	const (
		small = `{"rule":"r","status":"fail","severity":"fail","reason":"x"}`
		large = `{"rule":"r","kind":"regression","metric":"ncu.waves","unit":"byte","case":"small","machine":"h200-01234567","tier":"profile","status":"fail",` +
			`"severity":"fail","base":{"value":12.5,"unit":"byte"},"head":{"value":13.5,"unit":"byte"},"accepts":"max_regression 2%","reason":"worse"}`
	)
	long := strings.Replace(small, `"x"`, `"`+strings.Repeat(`x\"<é\u202e`, 10_000)+`"`, 1)
	for _, c := range []struct {
		name, format string
		verdict      []byte
	}{
		{"findings", "text", verdictOf(3_400, repeated(large, 50))},
		{"small findings", "markdown", verdictOf(2_500, repeated(small, 200))},
		{"kernels", "junit", verdictOf(170_000, small)},
		{"texts", "json", verdictOf(500, long)},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "verdict.json")
			if err := os.WriteFile(path, c.verdict, 0o600); err != nil {
				t.Fatal(err)
			}
			status, said, memory := reportOf(t, nil, "--format", c.format, path)
			if status != 1 || said != "" || memory > mostReport {
				t.Errorf("%d MiB: exit %d, %d MiB of memory, %s", len(c.verdict)>>20, status, memory>>10, said)
			}
			t.Logf("%d MiB take %d MiB of memory", len(c.verdict)>>20, memory>>10)
		})
	}
	for _, c := range []struct {
		name, begin, then, want string
	}{
		{"spaces", "{", " ", "the JSON is larger than 67108864 bytes"},
		{"a text", `{"schema":"`, "x", "the JSON is larger than 67108864 bytes"},
		{"objects", `{"kernels":[`, "{},", "the JSON holds more than 524288 objects or 4194304 values"},
	} {
		t.Run(c.name, func(t *testing.T) {
			endless := io.MultiReader(strings.NewReader(c.begin), io.LimitReader(&repeating{text: c.then}, 1<<30))
			status, said, memory := reportOf(t, endless, "-")
			if status != 2 || !strings.Contains(said, c.want) || memory > mostRefused {
				t.Errorf("exit %d, %d MiB of memory, %s", status, memory>>10, said)
			}
			t.Logf("1 GiB takes %d MiB of memory", memory>>10)
		})
	}
}

// reportOf runs gate report and returns its status, what it said on standard
// error, and the most memory that it had, in KiB.
func reportOf(t *testing.T, input io.Reader, args ...string) (status int, said string, memory int64) {
	t.Helper()
	var stderr bytes.Buffer
	file := filepath.Join(t.TempDir(), "peak")
	cmd := exec.Command("peak", append([]string{file, "gate", "report"}, args...)...)
	cmd.Stdin, cmd.Stderr = input, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) && !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stderr.String(), peakOf(t, file)
}

// runPeak runs a program and writes into a file the most memory that it had, in KiB. A
// process is charged with what the one that started it has, so that a test, which may
// have had much, starts this small one in between.
func runPeak(file, name string, args []string) int {
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	memory := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	if err := os.WriteFile(file, []byte(strconv.FormatInt(memory, 10)), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	return cmd.ProcessState.ExitCode()
}

// peakOf is what runPeak wrote.
func peakOf(t *testing.T, file string) int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || memory <= 0 {
		t.Fatalf("%q KiB of memory: %v", text, err)
	}
	return memory
}

// A repeating reader gives one text again and again.
type repeating struct {
	text string
	at   int
}

func (r *repeating) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[r.at]
		r.at = (r.at + 1) % len(r.text)
	}
	return len(p), nil
}
