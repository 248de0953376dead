package roof

import (
	"math"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

func TestEvaluate(t *testing.T) {
	sizes := map[string]int64{"B": 2, "S": 512, "long_name": 3, "7": 1, "huge": math.MaxInt64}
	dims := []string{"B", "S", "long_name", "7", "huge"}
	for _, c := range []struct {
		text string
		want int64
		err  string
	}{
		{"12", 12, ""},
		{"B", 2, ""},
		{"8*B*S", 8192, ""},
		{" 4 * B + 2*S*S+long_name ", 8 + 2*512*512 + 3, ""},
		{"0*B + 1", 1, ""},
		{"huge", math.MaxInt64, ""},
		{"9223372036854775807", math.MaxInt64, ""},
		{"huge+1", 0, `"huge+1" is above 2^63`},
		{"huge*2", 0, "is above 2^63"},
		{"huge*huge*0", 0, "is above 2^63"},
		{"huge*2 + huge*2 + 2*2", 0, "is above 2^63"},
		{"9223372036854775808", 0, "is above 2^63"},
		{"99999999999999999999", 0, "is above 2^63"},
		{"0", 0, "leave out what is not known"},
		{"0*B", 0, "leave out what is not known"},
		{"", 0, `"" is neither a number nor one of B, S`},
		{"B+", 0, `"" is neither`},
		{"*B", 0, `"" is neither`},
		{"B**2", 0, `"" is neither`},
		{"-1", 0, `"-1" is neither`},
		{"+1", 0, `"" is neither`},
		{"1.5*B", 0, `"1.5" is neither`},
		{"1e3", 0, `"1e3" is neither`},
		{"0x10", 0, `"0x10" is neither`},
		{"1_000", 0, `"1_000" is neither`},
		{"(B)", 0, `"(B)" is neither`},
		{"B/2", 0, `"B/2" is neither`},
		{"b", 0, `"b" is neither`},
		{"B S", 0, `"B S" is neither`},
		{"7*B", 0, "7 is a number and a dimension"},
	} {
		got, err := Evaluate(c.text, dims, func(d string) int64 { return sizes[d] })
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %d, %v; want %d, %q", c.text, got, err, c.want, c.err)
		}
	}
}

func TestOf(t *testing.T) {
	card := evidence.Capacity{L2Bytes: 60e6, ColdBytesPerNS: 4000, WarmBytesPerNS: 6000, FlopsPerNS: map[string]float64{"f16": 1e6, "i8": 2e6},
		Absent: map[string]string{"f8": "nothing reaches the peak of f8"}}
	flops, both := Work{Flops: 4e9, Unit: "f16"}, Work{Bytes: 1e9, Flops: 4e9, Unit: "f16"}
	for _, c := range []struct {
		name  string
		work  Work
		by    *evidence.Capacity
		state evidence.CacheState
		calls int
		want  float64
		of    string
		err   string
	}{
		{"operations, warm", flops, &card, evidence.Warm, 10, 4000, "4.0 GFLOP of f16", ""},
		{"operations, cold", flops, &card, evidence.Cold, 10, 4000, "4.0 GFLOP of f16", ""},
		{"the L2", both, &card, evidence.Warm, 10, 1e9 / 6000., "1.0 GB of the L2", ""},
		{"memory", both, &card, evidence.Cold, 10, (1e9 - 60e6/10) / 4000, "994 MB of memory", ""},
		{"memory of one call", Work{Bytes: 1e9}, &card, evidence.Cold, 1, 940e6 / 4000, "940 MB of memory", ""},
		{"no number of calls", Work{Bytes: 1e9}, &card, evidence.Cold, 0, 940e6 / 4000, "940 MB of memory", ""},
		{"operations are more than memory", Work{Bytes: 1e7, Flops: 4e12, Unit: "f16"}, &card, evidence.Cold, 1000, 4e6, "4.0 TFLOP of f16", ""},
		{"operations are more than the L2", Work{Bytes: 1e7, Flops: 4e12, Unit: "f16"}, &card, evidence.Warm, 1000, 4e6, "4.0 TFLOP of f16", ""},
		{"a batch that the L2 holds", Work{Bytes: 1e6}, &card, evidence.Cold, 10, 0, "", "the L2 can hold all that a batch moves"},
		{"a batch that the L2 holds, warm", Work{Bytes: 1e6}, &card, evidence.Warm, 10, 1e6 / 6000., "1.0 MB of the L2", ""},
		{"another unit", Work{Flops: 4e9, Unit: "i8"}, &card, evidence.Warm, 1, 2000, "4.0 GFLOP of i8", ""},
		{"a unit that has no peak", Work{Flops: 4e9, Unit: "f8"}, &card, evidence.Warm, 1, 0, "", "no peak of f8 was measured; the harness said then: nothing reaches the peak of f8"},
		{"its memory bounds all the same", Work{Bytes: 1e9, Flops: 4e9, Unit: "f8"}, &card, evidence.Cold, 10, (1e9 - 60e6/10) / 4000, "994 MB of memory", "nothing reaches the peak of f8"},
		{"a unit of which nothing is said", Work{Flops: 4e9, Unit: "f64"}, &card, evidence.Warm, 1, 0, "", "no peak of f64 was measured"},
		{"no capacity", both, nil, evidence.Cold, 1, 0, "", "does not say how fast"},
	} {
		got, err := Of(c.work, &evidence.Record{Capacity: c.by}, c.state, c.calls)
		if math.Abs(got.NS-c.want) > 1e-6*c.want || got.For != c.of || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v; want %g for %q, %q", c.name, got, err, c.want, c.of, c.err)
		}
	}
}

func TestImpossible(t *testing.T) {
	b := Bound{NS: 1000}
	for ns, want := range map[float64]bool{799.9: true, 800: false, 1000: false, 5000: false} {
		if b.Impossible(ns) != want {
			t.Errorf("%g ns of %g: %v", ns, b.NS, !want)
		}
	}
	if (Bound{}).Impossible(0) {
		t.Error("what has no bound was called impossible")
	}
	if v := b.Percent(4000); v.Number != 25 || v.Unit() != "%" {
		t.Errorf("%+v", v)
	}
	if v := b.Percent(0); v.Known() {
		t.Errorf("a time of 0 has the share %+v", v)
	}
}

func TestAmount(t *testing.T) {
	for x, want := range map[float64]string{1: "1.0 FLOP", 12: "12 FLOP", 999.4: "999 FLOP", 999.6: "1.0 kFLOP", 4294967296: "4.3 GFLOP", 123456789: "123 MFLOP", 9.2e18: "9.2 EFLOP"} {
		if got := amount(x, "FLOP"); got != want {
			t.Errorf("%g: %q, want %q", x, got, want)
		}
	}
}
