package collect

import (
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/kernels/harness"
)

const fast = `"sms":132,"sm_clock_max_mhz":1980,"memory_clock_max_mhz":3201,"memory_bus_bits":6144,"l2_bytes":62914560`

// saying is the first line of a stream whose device says this.
func saying(device string) []byte {
	return []byte(`{"config":{"protocol":"p","mode":"time","seed":1,"device":{"name":"NVIDIA H200"` + device + "}}}\n" + timeLine + "\n")
}

func TestCapacityOf(t *testing.T) {
	want := evidence.Capacity{SMs: 132, SMClockMHz: 1980, MemoryClockMHz: 3201, BusBits: 6144, L2Bytes: 62914560}
	if got := capacityOf(saying("," + fast)); got == nil || *got != want {
		t.Errorf("%+v", got)
	}
	for name, raw := range map[string][]byte{
		"nothing":                    nil,
		"no config":                  []byte(timeLine),
		"a config that comes second": append([]byte(timeLine+"\n"), saying(","+fast)...),
		"not a word of it":           saying(""),
		"a clock that is null":       saying("," + strings.Replace(fast, "1980", "null", 1)),
		"a clock of 0":               saying("," + strings.Replace(fast, "3201", "0", 1)),
		"a clock below 0":            saying("," + strings.Replace(fast, "3201", "-3201", 1)),
		"a text":                     saying("," + strings.Replace(fast, "6144", `"6144"`, 1)),
		"too large":                  saying("," + strings.Replace(fast, "6144", "1e300", 1)),
		"one that is missing":        saying("," + strings.Replace(fast, `"sms":132,`, "", 1)),
	} {
		if got := capacityOf(raw); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestTheHarnessSaysTheCapacity holds the names that are read to those that the
// harness writes.
func TestTheHarnessSaysTheCapacity(t *testing.T) {
	source, err := fs.ReadFile(harness.Files, "device.cu")
	if err != nil {
		t.Fatal(err)
	}
	fields := reflect.TypeFor[evidence.Capacity]()
	for i := range fields.NumField() {
		if name := fields.Field(i).Tag.Get("json"); !strings.Contains(string(source), `field("`+name+`"`) {
			t.Errorf("device.cu writes no %s", name)
		}
	}
}

// TestAuditOfTheCapacity: what a record says of its card's speed is in its raw input,
// or it is not said.
func TestAuditOfTheCapacity(t *testing.T) {
	said := capacityOf(saying("," + fast))
	slower := *said
	slower.SMs = 1
	alone, pair := map[string][]byte{"harness.jsonl": saying("," + fast)}, map[string][]byte{"head.jsonl": saying("," + fast), "base.jsonl": saying("")}
	for _, c := range []struct {
		name   string
		record evidence.Record
		raw    map[string][]byte
		fine   bool
	}{
		{"said", evidence.Record{Tier: evidence.Latency, Capacity: said}, alone, true},
		{"of two arms", evidence.Record{Tier: evidence.Latency, Base: &evidence.Address{}, Capacity: said}, pair, true},
		{"never said", evidence.Record{Tier: evidence.Latency}, map[string][]byte{"harness.jsonl": saying("")}, true},
		{"another tier", evidence.Record{Tier: evidence.Correctness}, alone, true},
		{"slower than it is", evidence.Record{Tier: evidence.Latency, Capacity: &slower}, alone, false},
		{"taken away", evidence.Record{Tier: evidence.Latency}, alone, false},
		{"made up", evidence.Record{Tier: evidence.Latency, Capacity: said}, map[string][]byte{"harness.jsonl": saying("")}, false},
		{"of a check", evidence.Record{Tier: evidence.Correctness, Capacity: said}, alone, false},
	} {
		if err := auditCapacity(&c.record, c.raw); (err == nil) != c.fine {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
