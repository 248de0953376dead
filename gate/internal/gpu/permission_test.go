package gpu

import (
	"os"
	"path/filepath"
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

func TestLastXid(t *testing.T) {
	const first, second = "<3>[ 99.5] NVRM: Xid (PCI:0000:0f:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
		"<3>[100.5] NVRM: Xid (PCI:0000:10:00 GPU-I:03): 94, pid=1, name=evil\x1b[31m, Contained\r\n"
	for _, c := range []struct{ log, want string }{
		{"", ""}, {"<3>[100.6] NVRM: Xid (PCI:zz): x, broken\n", ""},
		{"<4>[  1.0] usb 1-1: new device\n" + first, "79 (NVRM: Xid (PCI:0000:0f:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.)"},
		{first + second + "<4>[200.0] usb 1-1: gone\n", `94 (NVRM: Xid (PCI:0000:10:00 GPU-I:03): 94, pid=1, name=evil\u001b[31m, Contained)`},
	} {
		if got := lastXid(c.log); got != c.want {
			t.Errorf("%q: got %s, want %s", c.log, got, c.want)
		}
	}
	LastXid() // where the log cannot be read there is none
}
