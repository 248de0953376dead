package gpu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes files below a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	openModule   = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build  (builder@host)  Tue Sep  2 17:36:25 UTC 2025\nGCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)\n"
	closedModule = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\nGCC version:  gcc version 11.3.0\n"
	information  = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 171\nGPU UUID: \t GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f\nVideo BIOS: \t 96.00.a1.00.01\nBus Type: \t PCIe\nDMA Size: \t 52 bits\nBus Location: \t 0000:0f:00.0\nDevice Minor: \t 3\nGPU Firmware: \t 580.159.03\nGPU Excluded:\t No\n"
)

func TestQuick(t *testing.T) {
	other := strings.NewReplacer("3f1c9a52", "00000000", "0f:00", "87:00").Replace(information)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []Info // nil is not ok
	}{
		{"open module", map[string]string{"version": openModule, "gpus/0000:0f:00.0/information": information},
			[]Info{{"GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f", "NVIDIA H200", "580.159.03", "0000:0f:00.0"}}},
		{"closed module, two GPUs", map[string]string{"version": closedModule, "gpus/0000:87:00.0/information": other, "gpus/0000:0f:00.0/information": information},
			[]Info{{"GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f", "NVIDIA H200", "535.54.03", "0000:0f:00.0"}, {"GPU-00000000-7d0e-4b6a-9c55-0a1b2c3d4e5f", "NVIDIA H200", "535.54.03", "0000:87:00.0"}}},
		{"nothing", nil, nil},
		{"no version", map[string]string{"gpus/a/information": information}, nil},
		{"no GPU", map[string]string{"version": openModule}, nil},
		{"odd version", map[string]string{"version": "hello", "gpus/a/information": information}, nil},
		{"UUID not known yet", map[string]string{"version": openModule, "gpus/a/information": strings.ReplaceAll(information, "GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f", "GPU-????????-????-????-????-????????????")}, nil},
		{"one GPU of two is odd", map[string]string{"version": openModule, "gpus/a/information": information, "gpus/b/information": ""}, nil},
		{"too large", map[string]string{"version": openModule, "gpus/a/information": information + strings.Repeat("x", procLimit)}, nil},
	} {
		got, ok := quickIn(tree(t, c.files))
		if ok != (c.want != nil) || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %+v, %v", c.name, got, ok)
		}
	}
}

func TestProfilingAllowed(t *testing.T) {
	const root, user = "Name:\tgate\nCapEff:\t000001ffffffffff\n", "CapEff:\t0000000000000000\n"
	for _, c := range []struct {
		params, status string
		allowed, known bool
	}{
		{"RmLogonRC: 1\nRmProfilingAdminOnly: 0\n", user, true, true},
		{"RmProfilingAdminOnly: 1\n", user, false, true},
		{"RmProfilingAdminOnly: 1\n", root, true, true},
		{"RmProfilingAdminOnly: 1\n", "CapEff:\t0000000000200000\n", true, true},  // CAP_SYS_ADMIN alone
		{"RmProfilingAdminOnly: 1\n", "CapEff:\t000001ffffdfffff\n", false, true}, // all but CAP_SYS_ADMIN
		{"RmProfilingAdminOnly: 1\n", "", false, false},
		{"RmProfilingAdminOnly: 2\n", root, false, false},
		{"RmLogonRC: 1\n", root, false, false},
	} {
		dir := tree(t, map[string]string{"params": c.params, "status": c.status})
		allowed, known := profilingAllowedIn(dir, filepath.Join(dir, "status"))
		if allowed != c.allowed || known != c.known {
			t.Errorf("%q %q: %v, %v", c.params, c.status, allowed, known)
		}
	}
	if _, known := profilingAllowedIn(t.TempDir(), "/proc/self/status"); known {
		t.Error("known without a driver")
	}
}

func TestParseXids(t *testing.T) {
	log := "<4>[  1.0] usb 1-1: new device\n" +
		"<3>[ 99.5] NVRM: Xid (PCI:0000:0f:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n" +
		"<3>[100.5] NVRM: Xid (PCI:0000:10:00 GPU-I:03): 94, pid=1, name=evil\x1b[31m, Contained\r\n" +
		"<3>[100.6] NVRM: Xid (PCI:zz): x, broken\n"
	got := parseXids(log)
	if len(got) != 2 || got[0].Code != 79 || got[0].PCI != "0000:0f:00" || got[1].Code != 94 || got[1].PCI != "0000:10:00" {
		t.Fatalf("got %+v", got)
	}
	if strings.ContainsRune(got[1].Text, 0x1b) {
		t.Error("a control character came through")
	}
	if many := parseXids(strings.Repeat(log, 1000)); len(many) != maxXids {
		t.Errorf("kept %d", len(many))
	}
	if _, err := Xids(context.Background()); err != nil && !errors.Is(err, ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}
