package ptxas

import (
	"errors"
	"strings"
	"testing"
)

// TestResourceUsageAgrees: for one object, cuobjdump and ptxas -v give the same
// registers, and the same shared memory once the reserved kilobyte is taken off.
func TestResourceUsageAgrees(t *testing.T) {
	pairs, functions := 0, 0
	for _, path := range recordings(t, "testdata") {
		base, ok := strings.CutSuffix(path, ".resusage.txt")
		if !ok || strings.HasSuffix(base, "nvlink") {
			continue
		}
		pairs++
		usage, log := parseFile(t, path, ParseResourceUsage), parseFile(t, base+".log", Parse)
		for i := range usage.Functions {
			f := &usage.Functions[i]
			e := find(log, f.Arch, f.Name, f.Occurrence)
			if e == nil {
				t.Errorf("%s: %s is not in the log", path, f.Name)
				continue
			}
			functions++
			if f.Registers != e.Registers || f.StaticSharedBytes() != e.SharedBytes || f.Key != e.Key {
				t.Errorf("%s: %s: registers %v shared %v, the log says %v and %v", path, f.Name, f.Registers, f.StaticSharedBytes(), e.Registers, e.SharedBytes)
			}
			if c := e.ConstantBytes(0); c.Known && c != f.ConstantBytes(0) {
				t.Errorf("%s: %s: constant bank 0 has %v bytes, the log says %v", path, f.Name, f.ConstantBytes(0), c)
			}
		}
		if len(usage.Functions) != len(log.Entries) {
			t.Errorf("%s: %d functions, the log has %d entries", path, len(usage.Functions), len(log.Entries))
		}
	}
	if pairs < 8 || functions < 8*13 {
		t.Errorf("%d pairs with %d functions", pairs, functions)
	}
}

func TestStaticSharedBytes(t *testing.T) {
	for _, c := range []struct {
		arch    string
		printed int64
		want    Count
	}{
		{"sm_90", 5120, known(4096)}, {"sm_90", 0, known(0)}, {"sm_90", 1024, known(0)}, {"sm_120a", 1152, known(128)},
		{"sm_89", 1024, known(1024)}, {"", 0, known(0)}, {"", 5120, Count{}}, {"sm_90", 100, Count{}}, {"sm_999", 5120, Count{}},
	} {
		f := ResourceFunction{Arch: c.arch, SharedBytes: known(c.printed)}
		if got := f.StaticSharedBytes(); got != c.want {
			t.Errorf("%s %d: %v, want %v", c.arch, c.printed, got, c.want)
		}
	}
	var f ResourceFunction
	if f.StaticSharedBytes().Known {
		t.Error("an absent figure is known")
	}
}

func TestResourceUsageRefused(t *testing.T) {
	const head, function = "arch = sm_90\nResource usage:\n", " Function k:\n"
	const figures = "  REG:48 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:0\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "u: no resource usage: want the output of cuobjdump -res-usage"},
		{"other text", block, "u: no resource usage"},
		{"no function", head + " Common:\n  GLOBAL:0\n", "u: no kernel"},
		{"function outside", function + "\n" + figures, "u: no resource usage"},
		{"no heading, no figures", function + figures + function, "u:4: function k (line 3) has no figures"},
		{"no heading, figures cut off", function + "  REG:48 STA", `u:2: unreadable field "STA"`},
		{"no figures", head + function, "u:4: function k (line 3) has no figures"},
		{"two functions", head + function + function, "u:4: function k (line 3) has no figures"},
		{"next section", head + function + "Fatbin elf code:\n", "u:4: function k (line 3) has no figures"},
		{"figures alone", head + figures, "u:3: figures without a function"},
		{"twice", head + function + "  REG:1 REG:2\n", `u:4: unreadable field "REG:2"`},
		{"bank twice", head + function + "  REG:1 CONSTANT[0]:2 CONSTANT[0]:2\n", "unreadable field"},
		{"no number", head + function + "  REG:x\n", `unreadable field "REG:x"`},
		{"a blank lost", head + function + "  REG:14STACK:0 SHARED:0\n", `unreadable field "REG:14STACK:0"`},
		{"no registers", head + function + "  REG:\n", `unreadable field "REG:"`},
		{"no field", head + function + "  REG:1 nonsense\n", `unreadable field "nonsense"`},
		{"cut off", head + function + "  REG:48 STACK:0 SHA", `unreadable field "SHA"`},
		{"cut off at a field", head + function + "  REG:48 STACK:0", "u:4: the text ends inside a line of figures"},
		{"arch", "arch = gfx90a\n", "u:1: unreadable architecture"},
		{"name", head + " Function k\n", "u:3: unreadable function"},
	} {
		usage, err := ParseResourceUsage(strings.NewReader(c.text), "u")
		if usage == nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.name, usage, err, c.want)
		}
		var none *NoEntriesError
		if errors.As(err, &none) && none.Hint() == "" {
			t.Errorf("%s: no hint", c.name)
		}
	}
	for _, text := range []string{function + figures + function + figures, "noise\n Function f:\nREG 3\n" + function + figures + head + function + figures} {
		usage, err := ParseResourceUsage(strings.NewReader("arch = sm_80\n"+text), "u")
		if err != nil || len(usage.Functions) != 2 || usage.Functions[0].Name != "k" || usage.Functions[0].Arch != "sm_80" || usage.Functions[0].Registers != known(48) {
			t.Errorf("without heading: %+v, %v", usage, err)
		}
	}
	usage, err := ParseResourceUsage(strings.NewReader(head+function+"  REG:48 TENSOR:7 SHARED:2048\n"), "u")
	if err != nil || usage.Functions[0].Unknown[0] != "TENSOR:7" || usage.Functions[0].LocalBytes.Known {
		t.Errorf("unknown field: %+v, %v", usage, err)
	}
}
