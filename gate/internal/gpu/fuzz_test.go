package gpu

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/printable"
)

// seeds adds each recording of one kind; a fuzz target without any is an error.
func seeds(f *testing.F, name string) {
	f.Helper()
	files, err := filepath.Glob("testdata/smi/*/" + name)
	if err != nil || len(files) == 0 {
		f.Fatalf("no recording is named %s: %v", name, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
}

// reversed is a table with its rows in the opposite order.
func reversed(table string) string {
	rows := strings.Split(table, "\n")
	slices.Reverse(rows)
	return strings.Join(rows, "\n")
}

// Laws: a result or an error, never both; the order of the rows does not
// matter; a number that is known is finite and not negative; every UUID can be
// locked.
func FuzzDevices(f *testing.F) {
	seeds(f, "query-gpu.txt")
	f.Fuzz(func(t *testing.T, table string) {
		got, err := parseDevices(table, fields)
		if (err == nil) == (len(got) == 0) {
			t.Fatalf("%d devices and error %v", len(got), err)
		}
		again, err2 := parseDevices(reversed(table), fields)
		if (err == nil) != (err2 == nil) || !reflect.DeepEqual(got, again) {
			t.Fatalf("the order of rows matters: %v, %v", err, err2)
		}
		for _, d := range got {
			for _, r := range d.readings() {
				if r.Known && !(r.Value >= 0 && r.Value <= math.MaxFloat64) || !r.Known && r.Value != 0 {
					t.Errorf("reading %+v", r)
				}
			}
			path, err := lockPath("/locks", d.UUID)
			if err != nil || filepath.Dir(path) != "/locks" {
				t.Errorf("lock of %q: %s, %v", d.UUID, path, err)
			}
		}
	})
}

// Laws: what is believed of a row has a lockable UUID, no negative number, and
// a name that is safe to print.
func FuzzProcess(f *testing.F) {
	f.Add("GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f, 4711, a, b, 3")
	f.Add("GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f, [N/A], [Not Found], [N/A]")
	f.Fuzz(func(t *testing.T, row string) {
		p, err := parseProcess(row)
		if err != nil {
			return
		}
		if p.PID < 0 || checkUUID(p.UUID) != nil || p.Memory.Known && !(p.Memory.Value >= 0) {
			t.Errorf("%q: %+v", row, p)
		}
		if printable.Line(p.Name) != p.Name {
			t.Errorf("%q: name %q can move the cursor", row, p.Name)
		}
	})
}
