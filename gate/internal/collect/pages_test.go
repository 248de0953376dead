package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// launched is one row of ncu's table: its ID, its process and the registers that it
// measures.
type launched struct{ id, process, registers int }

func table(rows ...launched) string {
	text := "==PROF== Connected to process 7 (/x)\n" + page(`,"launch__registers_per_thread"`, `,"register/thread"`, "")
	text = text[:strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1]
	for _, r := range rows {
		text += fmt.Sprintf(`"%d","%d","harness","127.0.0.1","add(int *)","1","7","(32, 1, 1)","(4, 1, 1)","0","9.0","%d"`+"\n", r.id, r.process, r.registers)
	}
	return text + "==PROF== Disconnected from process 7\n"
}

// asInTable is a launch as every row of a table has it.
const asInTable = `{"grid":[4,1,1],"block":[32,1,1]}`

func profiled(kase string, nodes int) string {
	return profiledAs(kase, nodes, slices.Repeat([]string{asInTable}, max(0, nodes))...)
}

func profiledAs(kase string, nodes int, launches ...string) string {
	return fmt.Sprintf(`{"profile":{"kernel":"op/k","case":"%s","calls":1,"kernel_nodes":%d,"launches":[%s]}}`, kase, nodes, strings.Join(launches, ","))
}

// ncuOf is the script of an ncu that ends so when it is asked for several cases, and
// well with one launch when it is asked for one.
func ncuOf(several string) string {
	return "if [ $(grep -c '^--run$' $dir/args) -gt 1 ]; then\n" + several + "exit $?\nfi\n" + onePage
}

func writes(rows []launched, lines ...string) string {
	return "cat >$log <<'PAGE'\n" + table(rows...) + "PAGE\n" + say(append(append([]string{configLine}, lines...), endLine(lines...))...)
}

var threeCases = []unit{of("op/k", "small"), of("op/k", "large"), of("op/k", "wide")}

// TestOneStartForAllCases: each record holds the rows of its own case, in the order
// of the launches, and its raw file nothing else.
func TestOneStartForAllCases(t *testing.T) {
	c, _ := fake(t, "")
	c.Machine.CC = "9.0"
	var said []string
	c.progress = func(_ float64, what string) { said = append(said, what) }
	raw := map[string]string{}
	c.keep = func(r *evidence.Record, _ string, files map[string][]byte) error {
		raw[r.Address.Case] = string(files["ncu.csv"])
		if err := auditProfile(Auditor{}, r, files); err != nil {
			t.Errorf("%s: %v", r.Address.Case, err)
		}
		return nil
	}
	fakeNCU(t, c, ncuOf(writes([]launched{{0, 7, 10}, {1, 7, 20}, {2, 7, 20}, {3, 7, 30}}, profiled("small", 1), profiled("large", 2), profiled("wide", 1))))
	c.metrics = []string{"ncu.registers_per_thread"}
	records, err := c.profileUnits(context.Background(), threeCases)
	if err != nil || len(records) != 3 || starts(t, c) != 1 {
		t.Fatalf("%d records of %d starts, %v", len(records), starts(t, c), err)
	}
	for i, want := range []struct {
		registers float64
		launches  int
		raw       string
	}{{10, 1, table(launched{0, 7, 10})}, {20, 2, table(launched{1, 7, 20}, launched{2, 7, 20})}, {30, 1, table(launched{3, 7, 30})}} {
		r := records[i]
		if r.Failure != nil || r.Address.Case != threeCases[i].on.Name || r.Metrics.Get("ncu.registers_per_thread").Number != want.registers || len(r.Launches) != want.launches {
			t.Errorf("%s: %+v, failure %v", threeCases[i].on.Name, r, r.Failure)
		}
		if raw[r.Address.Case] != want.raw {
			t.Errorf("%s: its raw file is\n%s\nwant\n%s", r.Address.Case, raw[r.Address.Case], want.raw)
		}
	}
	if !slices.Equal(said, []string{"profiling op/k on small, large, wide"}) {
		t.Errorf("%q", said)
	}
}

// TestRowsThatCannotBeToldApart: nothing of such a process is kept. Each case has one
// of its own then, and what is wrong there as well is said.
func TestRowsThatCannotBeToldApart(t *testing.T) {
	three := []launched{{0, 7, 10}, {1, 7, 20}, {2, 7, 30}}
	calls := []string{profiled("small", 1), profiled("large", 1), profiled("wide", 1)}
	of := func(lines ...string) []string { return lines }
	for _, c := range []struct {
		name  string
		rows  []launched
		lines []string
		more  string
	}{
		{"a row too few", three[:2], calls, ""},
		{"a row too many", append(slices.Clone(three), launched{3, 7, 40}), calls, ""},
		{"a call of more launches", three, of(profiled("small", 2), calls[1], calls[2]), ""},
		{"no launch", three, of(profiled("small", 0), profiled("large", 2), calls[2]), ""},
		{"a negative number of launches", three, of(profiled("small", -1), profiled("large", 3), calls[2]), ""},
		{"IDs that begin anew", []launched{{0, 7, 10}, {0, 7, 20}, {1, 7, 30}}, calls, ""},
		{"an ID left out", []launched{{0, 7, 10}, {2, 7, 20}, {3, 7, 30}}, calls, ""},
		{"IDs that do not begin at 0", []launched{{1, 7, 10}, {2, 7, 20}, {3, 7, 30}}, calls, ""},
		{"rows out of order", []launched{{1, 7, 10}, {0, 7, 20}, {2, 7, 30}}, calls, ""},
		{"two processes", []launched{{0, 7, 10}, {1, 8, 20}, {2, 8, 30}}, calls, ""},
		{"calls in another order", three, of(calls[1], calls[0], calls[2]), ""},
		{"a call twice", three, of(calls[0], calls[0], calls[2]), ""},
		{"a call left out", three[:2], calls[:2], ""},
		{"a call of another kernel", three, of(strings.Replace(calls[0], "op/k", "op/x", 1), calls[1], calls[2]), ""},
		{"two calls of a case", three, of(strings.Replace(calls[0], `"calls":1`, `"calls":2`, 1), calls[1], calls[2]), ""},
		{"another grid", three, of(calls[0], profiledAs("large", 1, `{"grid":[4,2,1],"block":[32,1,1]}`), calls[2]), ""},
		{"another block", three, of(calls[0], calls[1], profiledAs("wide", 1, `{"grid":[4,1,1],"block":[64,1,1]}`)), ""},
		{"a launch that is not told", three, of(calls[0], profiledAs("large", 1), calls[2]), ""},
		{"a launch that is not counted", three, of(calls[0], profiledAs("large", 1, asInTable, asInTable), calls[2]), ""},
		{"an error in one case", three[:2], of(calls[0], calls[2], strings.ReplaceAll(errorLine, "small", "large")), "exit 1\n"},
		{"an exit that is not well", three, calls, "exit 3\n"},
		{"a crash", three, calls, "kill -SEGV $$\n"},
	} {
		b, kept := fake(t, "")
		fakeNCU(t, b, ncuOf(writes(c.rows, c.lines...)+c.more))
		b.metrics = []string{"ncu.registers_per_thread"}
		records, err := b.profileUnits(context.Background(), threeCases)
		if err != nil || len(records) != 3 || len(*kept) != 3 || starts(t, b) != 4 {
			t.Errorf("%s: %d records, %d kept, %d starts, %v", c.name, len(records), len(*kept), starts(t, b), err)
		}
		for i, r := range records {
			if r.Failure != nil || r.Address.Case != threeCases[i].on.Name || r.Metrics.Get("ncu.registers_per_thread").Number != 40 {
				t.Errorf("%s: %+v, failure %v", c.name, r, r.Failure)
			}
		}
	}
}

// TestOneCaseAloneIsHeldToItsLaunches: what is refused of several cases is refused
// of one, and is not asked for again.
func TestOneCaseAloneIsHeldToItsLaunches(t *testing.T) {
	c, kept := fake(t, "")
	fakeNCU(t, c, writes([]launched{{0, 7, 10}, {1, 7, 20}}, profiled("small", 1)))
	records, err := c.profileUnits(context.Background(), threeCases[:1])
	if err != nil || len(records) != 1 || len(*kept) != 0 || starts(t, c) != 1 {
		t.Fatalf("%d records, %d kept, %d starts, %v", len(records), len(*kept), starts(t, c), err)
	}
	if f := records[0].Failure; f == nil || f.Kind != evidence.Tool || f.Message != "ncu saw 2 kernel launches, and as they were captured the profiled calls make 1" {
		t.Errorf("%v", f)
	}
}

// TestLaunchesThatAddUp: one case makes one launch more when it is profiled and the
// next one fewer, so the total is right. The launch that gives it away is named.
func TestLaunchesThatAddUp(t *testing.T) {
	c, kept := fake(t, "")
	other := `{"grid":[4,1,1],"block":[64,1,1]}`
	page := strings.ReplaceAll(onePage, profileLine, profiledAs("small", 1, "null"))
	fakeNCU(t, c, strings.Replace(ncuOf(writes([]launched{{0, 7, 10}, {1, 7, 20}, {2, 7, 30}}, profiledAs("small", 1, asInTable), profiledAs("large", 2, asInTable, other))), onePage, page, 1))
	c.metrics = []string{"ncu.registers_per_thread"}
	if _, err := c.profileUnits(context.Background(), threeCases[:2]); err != nil || len(*kept) != 2 || starts(t, c) != 3 {
		t.Errorf("%d kept, %d starts, %v", len(*kept), starts(t, c), err)
	}
	c, kept = fake(t, "")
	fakeNCU(t, c, writes([]launched{{0, 7, 10}, {1, 7, 20}}, profiledAs("small", 2, "null", other)))
	records, err := c.profileUnits(context.Background(), threeCases[:1])
	want := "launch 1 of ncu's table is add(int *) with the grid [4 1 1] and the block [32 1 1], and as launch 1 of small was captured they are [4 1 1] and [64 1 1]"
	if err != nil || len(*kept) != 0 || records[0].Failure == nil || records[0].Failure.Message != want {
		t.Errorf("%d kept, %v, %v", len(*kept), records[0].Failure, err)
	}
}

// TestNoPermissionIsAskedForOnce: it is refused to every case alike.
func TestNoPermissionIsAskedForOnce(t *testing.T) {
	c, kept := fake(t, "")
	fakeNCU(t, c, "echo '==ERROR== ERR_NVGPUCTRPERM' >&2; exit 1")
	records, err := c.profileUnits(context.Background(), threeCases)
	if err != nil || len(records) != 3 || len(*kept) != 0 || starts(t, c) != 1 {
		t.Fatalf("%d records, %d kept, %d starts, %v", len(records), len(*kept), starts(t, c), err)
	}
	for _, r := range records {
		if r.Failure == nil || r.Failure.Kind != evidence.Permission {
			t.Errorf("%+v", r)
		}
	}
}

// TestDeviceGoneWhileProfiling: nothing more is started on it.
func TestDeviceGoneWhileProfiling(t *testing.T) {
	c, kept := fake(t, "")
	gone := strings.TrimSuffix(c.program, "harness") + "dead"
	fakeNCU(t, c, "touch "+gone+"\n"+say(configLine, errorLine, endLine(errorLine))+"exit 1")
	records, err := c.profileUnits(context.Background(), threeCases)
	if !errors.Is(err, errDevice) || len(records) != 3 || len(*kept) != 0 || starts(t, c) != 1 {
		t.Errorf("%d records, %d kept, %d starts, %v", len(records), len(*kept), starts(t, c), err)
	}
}
