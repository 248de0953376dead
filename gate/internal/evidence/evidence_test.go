package evidence

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

func number(x float64) *float64 { return &x }

var h200 = Machine{GPU: "NVIDIA H200", Driver: "580.159.03", Runtime: "13.0", PowerLimitW: "700", MIG: "Disabled", CC: "9.0", Clocks: "unlocked"}

// whole is a record with every field filled in.
func whole() *Record {
	state := DeviceState{SMMHz: number(1980), MemMHz: number(3201), Temperature: number(31), PowerW: number(121.5), Throttle: []string{"sw_power_cap"}}
	sample := Sample{CacheState: "warm", Calls: 8, KernelNodes: 16, Sets: 3, BatchesNS: []float64{101.25, 99.5}, Before: state,
		After: DeviceState{Throttle: []string{}}}
	address := Address{Identity: Identity{Code: strings.Repeat("ab", 32), Host: strings.Repeat("cd", 32)}, Op: "sum", Case: "small",
		Harness: strings.Repeat("ef", 32), Machine: h200.Key()}
	return &Record{Schema: Schema, Tier: Sanitizer, Tool: "racecheck", Address: address, Base: &address,
		Continues: strings.Repeat("01", 32), Open: &Open{Plan: "10 processes", States: []CacheState{Warm}, Processes: 3},
		Provenance: Provenance{Recorded: "2026-11-20T10:00:00Z", Kernel: "sum/<one> & two", Commit: "0123", Compiler: "13.0.88",
			Profiler: "ncu 2025.3.1", Protocol: "gate-harness/1", Machine: h200},
		Capacity: &Capacity{L2Bytes: 62914560, ColdBytesPerNS: 4400, WarmBytesPerNS: 6500.5, FlopsPerNS: map[string]float64{"f16": 989000}, Absent: map[string]string{"f8": "none"}},
		Absent:   map[CacheState]string{Cold: "it is too large"},
		Metrics:  Metrics{"latency.typical": Of(100.5, "ns"), "latency.mean": Of(0, "ns"), "ncu.achieved_occupancy": Absent("no counter of that name", "%")},
		Entries:  map[string]Metrics{"k(int*)": {"ptxas.registers": Of(32, "registers/thread")}},
		Failure:  &Failure{Kind: Hang, Message: "it hangs", Hint: "wait"},
		Checks: []Check{{Class: "normal", Elements: 4, RelativeError: number(0), MaxAbsError: nil, MaxAbsIndex: 3, NonFinite: 1,
			Unwritten: 2, Guard: "ok", InputsChanged: true, Repeatable: true, Status: "fail", Reasons: []string{"wrong"}}},
		Launches:   []Launch{{Kernel: "k(int*)", Block: [3]int{128, 1, 1}, Grid: [3]int{2, 3, 4}, Metrics: Metrics{"ncu.duration": Of(7, "ns")}}},
		Samples:    []Sample{sample},
		Experiment: &Experiment{Rounds: []Round{{Order: "AB", Base: []Sample{sample}, Head: []Sample{sample}}}},
		AA:         &AA{Rounds: 10, Discarded: []Discarded{{Number: 3, Reason: "hot"}}, ProcessSeconds: 0.5, TimedSeconds: 0.01},
		Sessions:   []Session{{Recorded: "2026-11-20T10:00:00Z", Commit: "c0ffee", Card: "0a1b2c3d4e5f", Processes: []SessionProcess{{CacheState: "warm", Typical: 101.25, Mean: 102.5}}}},
		Raw:        []Raw{{Name: "latency.log.gz", SHA256: strings.Repeat("0", 64), Bytes: 12}},
	}
}

func TestDecodeEncodeIsIdentity(t *testing.T) {
	want := whole()
	data, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if again, _ := Encode(got); string(again) != string(data) {
		t.Error("the second encoding differs")
	}
	if !strings.Contains(string(data), `"sum/<one> & two"`) || data[len(data)-1] != '\n' {
		t.Error("names are escaped, or the final newline is missing")
	}
}

// TestWholeRecordHasEveryField keeps whole() whole as fields are added.
func TestWholeRecordHasEveryField(t *testing.T) {
	v := reflect.ValueOf(*whole())
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("field %s is empty", v.Type().Field(i).Name)
		}
	}
}

func TestAbsenceIsNeverZero(t *testing.T) {
	var zero Value
	for name, v := range map[string]Value{
		"zero value": zero, "no such metric": Metrics{}.Get("x"), "nil metrics": Metrics(nil).Get("x"), "no reason": Absent("", "ns"),
		"NaN": Of(math.NaN(), "ns"), "+Inf": Of(math.Inf(1), "ns"), "-Inf": Of(math.Inf(-1), "ns"),
	} {
		if v.Known() {
			t.Errorf("%s: known as %v", name, v.Number)
		}
		data, err := json.Marshal(v)
		if err != nil || strings.Contains(string(data), "value\":") || !strings.Contains(string(data), `"missing":"`) {
			t.Errorf("%s: %s, %v", name, data, err)
		}
		var back Value
		if err := json.Unmarshal(data, &back); err != nil || back.Known() || back.Missing() == "" {
			t.Errorf("%s: comes back as %+v, %v", name, back, err)
		}
	}
	if v := Of(0, "byte"); !v.Known() {
		t.Error("a measured 0 is not known")
	}
}

func TestValueRefusals(t *testing.T) {
	for _, text := range []string{
		`{}`, `null`, `0`, `"0"`, `[]`, `{"value":null}`, `{"value":1,"missing":"x"}`, `{"missing":""}`, `{"value":"1"}`,
		`{"value":1e999}`, `{"value":1,"extra":2}`, `{"unit":"ns"}`,
	} {
		m := Metrics{}
		if err := json.Unmarshal([]byte(`{"m":`+text+`}`), &m); err == nil {
			t.Errorf("%s is read as %+v", text, m["m"])
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	data, err := Encode(whole())
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	change := func(old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("the record does not hold %s", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "the JSON is cut short"},
		{"cut", text[:len(text)/2], "the JSON is cut short"},
		{"second document", text + "{}", "data follows the JSON"},
		{"garbage after the end", text + "x", "data follows the JSON"},
		{"another schema", change("gate/evidence/v1", "gate/evidence/v2"), `the schema is "gate/evidence/v2", this gate reads "gate/evidence/v1"`},
		{"no schema", change(`"schema": "gate/evidence/v1",`, ""), `the schema is "", this gate reads "gate/evidence/v1"`},
		{"unknown key", change(`"tier"`, `"teir"`), `json: unknown field "teir"`},
		{"unknown key below", change(`"driver"`, `"drivers"`), `json: unknown field "drivers"`},
		{"key twice", change(`"tier"`, `"tier": "profile", "tier"`), `the key "tier" appears twice in one object`},
		{"key twice in another case", change(`"tier"`, `"TIER": "profile", "tier"`), `the key "tier" appears twice in one object`},
		{"key twice with a long s", change(`"schema"`, `"ſchema": "gate/evidence/v1", "schema"`), `the key "schema" appears twice in one object`},
		{"key twice with a Kelvin sign", change(`"kernel"`, "\"\u212aernel\": \"x\", \"kernel\""), `the key "kernel" appears twice in one object`},
		{"metric twice", change(`"latency.mean"`, `"latency.typical": {"value": 1}, "latency.mean"`), `the key "latency.typical" appears twice in one object`},
		{"not UTF-8", change("sum/<one>", "sum/\xff"), "the JSON is not UTF-8"},
		{"deep", strings.Repeat("[", 5000), "the JSON is nested deeper than 64"},
		{"deep, closed", `{"raw":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}", "the JSON is nested deeper than 64"},
		{"NaN", change("101.25", "NaN"), "invalid character 'N' looking for beginning of value"},
		{"no number", change("101.25", "1e400"), "json: cannot unmarshal number 1e400 into Go struct field Sample.samples.batches_ns of type float64"},
		{"time of 0", change("101.25", "0"), "a batch time of 0 ns is not a time"},
		{"time below 0", change("101.25", "-1"), "a batch time of -1 ns is not a time"},
		{"time of an hour", change("101.25", "3.6e12"), "a batch time of 3.6e+12 ns is not a time"},
		{"no tool", change(`"tool": "racecheck"`, `"tool": ""`), `a record of the tier "sanitizer" cannot be of the tool ""`},
		{"another tool", change(`"racecheck"`, `"ncu"`), `a record of the tier "sanitizer" cannot be of the tool "ncu"`},
		{"a tool that is a path", change(`"racecheck"`, `"../racecheck"`), `a record of the tier "sanitizer" cannot be of the tool "../racecheck"`},
		{"a tool of another tier", change(`"sanitizer"`, `"profile"`), `a record of the tier "profile" cannot be of the tool "racecheck"`},
		{"no code id", change(strings.Repeat("ab", 32), ""), "the record has no code id or no host id"},
		{"no host id", change(strings.Repeat("cd", 32), ""), "the record has no code id or no host id"},
		{"too large", text + strings.Repeat(" ", MaxRecord), "the JSON is larger than 8388608 bytes"},
	} {
		r, err := Decode([]byte(c.text))
		if err == nil || err.Error() != c.want || r != nil {
			t.Errorf("%s: %v (record %v), want %s", c.name, err, r != nil, c.want)
		}
	}
	broken := whole()
	broken.Experiment.Rounds[0].Head[0].BatchesNS = []float64{5, -5}
	data, err = Encode(broken)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(data); err == nil || err.Error() != "a batch time of -5 ns is not a time" {
		t.Errorf("a time below 0 in an experiment: %v", err)
	}
}

func TestEncodeRefusesWhatJSONCannotHold(t *testing.T) {
	r := whole()
	r.Checks[0].RelativeError = number(math.NaN())
	if data, err := Encode(r); err == nil {
		t.Errorf("NaN is written as %s", data)
	}
}

// FuzzDecode holds: what is accepted is written and read again as the same
// bytes, has an identity, and no missing metric has turned into a number.
func FuzzDecode(f *testing.F) {
	data, err := Encode(whole())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"schema":"gate/evidence/v1","tier":"correctness","address":{"code_id":"a","host_id":"b","op":"","case":"","harness_id":"","machine_key":""},` +
		`"metrics":{"m":{"missing":"why"},"n":{"value":-0.0,"unit":"ns"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			if r != nil {
				t.Fatal("an error comes with a record")
			}
			return
		}
		first, err := Encode(r)
		if err != nil {
			t.Fatalf("accepted and not written: %v", err)
		}
		back, err := Decode(first)
		if err != nil {
			t.Fatalf("written and not accepted: %v\n%s", err, first)
		}
		second, err := Encode(back)
		if err != nil || string(second) != string(first) {
			t.Fatalf("%v: first\n%s\nsecond\n%s", err, first, second)
		}
		if !r.Address.Known() || r.Schema != Schema {
			t.Fatal("no identity, or another schema")
		}
		for name, v := range r.Metrics {
			w := back.Metrics[name]
			if v.Known() != w.Known() || v.Number != w.Number || v.Known() != (v.Missing() == "") {
				t.Fatalf("%s: %+v comes back as %+v", name, v, w)
			}
		}
	})
}

func TestIdentity(t *testing.T) {
	for _, c := range []struct {
		id    Identity
		known bool
		short string
	}{
		{Identity{}, false, "-"}, {Identity{Code: "a"}, false, "a-"}, {Identity{Host: "b"}, false, "-b"}, {Identity{"a", "b"}, true, "a-b"},
		{Identity{strings.Repeat("0123456789", 3), strings.Repeat("f", 64)}, true, "012345678901-ffffffffffff"},
	} {
		if c.id.Known() != c.known || c.id.Short() != c.short {
			t.Errorf("%+v: known %v, short %q", c.id, c.id.Known(), c.id.Short())
		}
	}
}

func TestFailureBlames(t *testing.T) {
	kinds := map[FailureKind]bool{Hang: true, Crash: true, CUDA: true, Wrong: true, Permission: false, Device: false, Tool: false, "": false, "later": false}
	for kind, blames := range kinds {
		if f := (&Failure{Kind: kind, Message: "m"}); f.Blames() != blames {
			t.Errorf("%q blames the kernel: %v", kind, !blames)
		}
	}
	if got := (&Failure{Kind: Hang, Message: "it hangs"}).Error(); got != "hang: it hangs" {
		t.Error(got)
	}
}
