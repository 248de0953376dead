package gpu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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
