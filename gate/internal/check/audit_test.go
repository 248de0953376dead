package check_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/collect"
	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/store"
)

const recorded = "../../../kernels/evidence"

func audit(t *testing.T) store.Audit {
	t.Helper()
	set, err := manifest.LoadAll("../../..", []string{"kernels/**/kernel.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	a := collect.Auditor{Ops: set.Ops}
	return store.Audit{Check: a.Audit, Knows: a.Knows()}
}

func all(t *testing.T) []*evidence.Record {
	t.Helper()
	records, err := store.Open(recorded).Records()
	if err != nil || len(records) == 0 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	return records
}

// TestRecordedEvidenceIsConsistent reads every record of the repository.
func TestRecordedEvidenceIsConsistent(t *testing.T) {
	s := store.Open(recorded).Audited(audit(t))
	for _, r := range all(t) {
		if _, err := s.Get(r.Key()); err != nil {
			t.Error(err)
		}
	}
}

// A forgery is a kind of inconsistent record: what is changed in a record and
// its raw inputs, which are stored with fitting digests, and what is said.
type forgery struct {
	name, want string
	of         func(*evidence.Record) bool
	change     func(r *evidence.Record, raw map[string]string)
}

func tier(want evidence.Tier) func(*evidence.Record) bool {
	return func(r *evidence.Record) bool { return r.Tier == want && r.Experiment == nil }
}

func pair(r *evidence.Record) bool  { return r.Experiment != nil }
func every(r *evidence.Record) bool { return true }

// measured is a record of a card; the compiler's has neither driver nor harness.
func measured(r *evidence.Record) bool { return r.Tier != evidence.Static }

func times(x float64, samples []evidence.Sample) {
	for i := range samples {
		for j := range samples[i].BatchesNS {
			samples[i].BatchesNS[j] *= x
		}
	}
}

func number(x float64) *float64 { return &x }

// swap replaces the first match of a pattern in a raw input.
func swap(raw map[string]string, name, pattern, with string) {
	first := true
	was := raw[name]
	raw[name] = regexp.MustCompile(pattern).ReplaceAllStringFunc(was, func(s string) string {
		if !first {
			return s
		}
		first = false
		return with
	})
	if raw[name] == was {
		panic(name + " holds no " + pattern)
	}
}

var (
	correctness, profile, latency, sessions = tier(evidence.Correctness), tier(evidence.Profile), tier(evidence.Latency), tier(evidence.Sessions)

	forgeries = []forgery{
		// of any record
		{"dated in the future", "lies in the future", every, func(r *evidence.Record, _ map[string]string) {
			r.Provenance.Recorded = time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
		}},
		{"a time zone", "which is not a date in UTC", every, func(r *evidence.Record, _ map[string]string) {
			r.Provenance.Recorded = strings.TrimSuffix(r.Provenance.Recorded, "Z") + "-12:00"
		}},
		{"a date of the future in a time zone", "which is not a date in UTC", every, func(r *evidence.Record, _ map[string]string) {
			r.Provenance.Recorded = "2126-01-01T00:00:00+14:00"
		}},
		{"UTC as a number", "which is not a date in UTC", every, func(r *evidence.Record, _ map[string]string) {
			r.Provenance.Recorded = strings.TrimSuffix(r.Provenance.Recorded, "Z") + "+00:00"
		}},
		{"a fraction of a second", "which is not a date in UTC", every, func(r *evidence.Record, _ map[string]string) {
			r.Provenance.Recorded = strings.TrimSuffix(r.Provenance.Recorded, "Z") + ".5Z"
		}},
		{"a year of five digits", "which is not a date", every, func(r *evidence.Record, _ map[string]string) { r.Provenance.Recorded = "10000-01-01T00:00:00Z" }},
		{"a 30th of February", "which is not a date", every, func(r *evidence.Record, _ map[string]string) { r.Provenance.Recorded = "2026-02-30T00:00:00Z" }},
		{"a leap second", "which is not a date", every, func(r *evidence.Record, _ map[string]string) { r.Provenance.Recorded = "2016-12-31T23:59:60Z" }},
		{"an empty date", "which is not a date", every, func(r *evidence.Record, _ map[string]string) { r.Provenance.Recorded = "" }},
		{"no date", "which is not a date", every, func(r *evidence.Record, _ map[string]string) { r.Provenance.Recorded = "yesterday" }},
		{"no kernel", "does not say which kernel", every, func(r *evidence.Record, _ map[string]string) { r.Provenance.Kernel = "" }},
		{"no compiler", "what compiled it", measured, func(r *evidence.Record, _ map[string]string) { r.Provenance.Compiler = "" }},
		{"no compiler of its own report", "its place says", tier(evidence.Static), func(r *evidence.Record, _ map[string]string) { r.Provenance.Compiler = "" }},
		{"a short code id", "is not a SHA-256", every, func(r *evidence.Record, _ map[string]string) { r.Address.Code = r.Address.Code[:40] }},
		{"a failure", "failures are never recorded", every, func(r *evidence.Record, _ map[string]string) {
			r.Failure = &evidence.Failure{Kind: evidence.Tool, Message: "x"}
		}},
		{"another driver", "its place says", every, func(r *evidence.Record, _ map[string]string) { r.Provenance.Machine.Driver = "1" }},
		{"the sections of another tier", "a record of its tier holds", every, func(r *evidence.Record, _ map[string]string) {
			r.AA, r.Sessions = &evidence.AA{}, []evidence.Session{{Recorded: r.Provenance.Recorded}}
		}},
		{"one raw input more", "raw input", every, func(_ *evidence.Record, raw map[string]string) { raw["more.log"] = "x" }},
		{"no raw input", "it has the raw inputs", func(r *evidence.Record) bool { return len(r.Raw) > 0 }, func(_ *evidence.Record, raw map[string]string) { clear(raw) }},
		{"an empty raw input", "", func(r *evidence.Record) bool { return len(r.Raw) > 0 }, func(_ *evidence.Record, raw map[string]string) {
			for name := range raw {
				raw[name] = ""
			}
		}},
		{"garbage with its digest", "", func(r *evidence.Record) bool { return len(r.Raw) > 0 }, func(_ *evidence.Record, raw map[string]string) {
			for name := range raw {
				raw[name] = "garbage\n"
			}
		}},
		// of correctness
		{"errors of 0.9", "is not the one in its raw input", correctness, func(r *evidence.Record, _ map[string]string) {
			for i := range r.Checks {
				r.Checks[i].RelativeError = number(0.9)
			}
			r.Metrics["check.relative_error"] = evidence.Of(0.9, "")
		}},
		{"errors of 0.9 in the raw input too", "a tolerance of 0.001", correctness, func(r *evidence.Record, raw map[string]string) {
			raw["harness.jsonl"] = regexp.MustCompile(`"relative_error":[^,]+`).ReplaceAllString(raw["harness.jsonl"], `"relative_error":0.9`)
			for i := range r.Checks {
				r.Checks[i].RelativeError = number(0.9)
			}
			r.Metrics["check.relative_error"] = evidence.Of(0.9, "")
		}},
		{"14 of 15 classes left out", "were checked", correctness, func(r *evidence.Record, _ map[string]string) { r.Checks = r.Checks[:1] }},
		{"one class left out of the raw input too", "some were left out", correctness, func(r *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `(?m)^\{"(begin|check)":[^\n]*"class":"normal"[^\n]*\n`, "")
			swap(raw, "harness.jsonl", `(?m)^\{"(begin|check)":[^\n]*"class":"normal"[^\n]*\n`, "")
			r.Checks = r.Checks[1:]
		}},
		{"a class twice", "twice", correctness, func(r *evidence.Record, _ map[string]string) { r.Checks = append(r.Checks, r.Checks[0]) }},
		{"a class under another name", "were checked", correctness, func(r *evidence.Record, _ map[string]string) { r.Checks[0].Class = "harmless" }},
		{"classes in another order", "were checked", correctness, func(r *evidence.Record, _ map[string]string) {
			r.Checks[0], r.Checks[1] = r.Checks[1], r.Checks[0]
		}},
		{"a better error", "is not the one in its raw input", correctness, func(r *evidence.Record, _ map[string]string) { r.Checks[3].RelativeError = number(0) }},
		{"elements that were not finite", "is not the one in its raw input", correctness, func(r *evidence.Record, _ map[string]string) { r.Checks[0].NonFinite = 3 }},
		{"a finite error of elements that are not finite", "has a finite error", correctness, func(r *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `"nonfinite":0`, `"nonfinite":3`)
			r.Checks[0].NonFinite = 3
		}},
		{"more unwritten than elements", "elements cannot hold", correctness, func(r *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `"unwritten":0`, `"unwritten":99999999999`)
			r.Checks[0].Unwritten = 99999999999
		}},
		{"an error below 0", "an error below 0", correctness, func(r *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `"max_abs_error":[^,]+`, `"max_abs_error":-1`)
			r.Checks[0].MaxAbsError = number(-1)
		}},
		{"a pass with reasons", "with 1 reasons", correctness, func(r *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `"reasons":\[\]`, `"reasons":["wrong"]`)
			r.Checks[0].Reasons = []string{"wrong"}
		}},
		{"a pass after an input was written", "something about it is wrong", correctness, func(r *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `"inputs_changed":false`, `"inputs_changed":true`)
			r.Checks[0].InputsChanged = true
		}},
		{"a status of its own", `has the status "fine"`, correctness, func(r *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `"status":"pass"`, `"status":"fine"`)
			r.Checks[0].Status = "fine"
		}},
		{"fewer failed classes", "its check.failed_classes is -1", correctness, func(r *evidence.Record, _ map[string]string) {
			r.Metrics["check.failed_classes"] = evidence.Of(-1, "")
		}},
		{"a smaller figure", "its check.relative_error is 1e-09", correctness, func(r *evidence.Record, _ map[string]string) {
			r.Metrics["check.relative_error"] = evidence.Of(1e-9, "")
		}},
		{"a figure more", "is a figure latency.typical", correctness, func(r *evidence.Record, _ map[string]string) {
			r.Metrics["latency.typical"] = evidence.Of(1, "ns")
		}},
		{"a figure less", "lacks the figure", correctness, func(r *evidence.Record, _ map[string]string) { delete(r.Metrics, "check.max_abs_error") }},
		{"another protocol", "protocol", correctness, func(r *evidence.Record, _ map[string]string) { r.Provenance.Protocol = "gate-harness/9" }},
		{"of another kernel", "its raw input is of", correctness, func(r *evidence.Record, _ map[string]string) { r.Provenance.Kernel = "attention/other" }},
		{"the raw input of another case", "it is of case", correctness, func(_ *evidence.Record, raw map[string]string) {
			raw["harness.jsonl"] = regexp.MustCompile(`"case":"[^"]+"`).ReplaceAllString(raw["harness.jsonl"], `"case":"tiny"`)
		}},
		{"lines of two kernels", "and others are of", correctness, func(_ *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `"check":\{"kernel":"[^"]+"`, `"check":{"kernel":"attention/other"`)
		}},
		{"measured on another device", "the record says", correctness, func(_ *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `"NVIDIA H200"`, `"NVIDIA A100"`)
		}},
		{"measured in another mode", `the mode is "time"`, correctness, func(_ *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `"mode":"check"`, `"mode":"time"`)
		}},
		{"a raw line cut short", "line 3 of its raw input", correctness, func(_ *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `"repeatable":true,[^\n]*`, `"repea`)
		}},
		// of the profile
		{"a better occupancy", "its ncu.achieved_occupancy is 99", profile, func(r *evidence.Record, _ map[string]string) {
			r.Metrics["ncu.achieved_occupancy"] = evidence.Of(99, "%")
		}},
		{"a figure in another unit", "its ncu.duration is", profile, func(r *evidence.Record, _ map[string]string) {
			r.Metrics["ncu.duration"] = evidence.Of(r.Metrics["ncu.duration"].Number, "ms")
		}},
		{"a figure that was not collected", "its ncu.spill_instructions is 0 inst", profile, func(r *evidence.Record, _ map[string]string) {
			r.Metrics["ncu.spill_instructions"] = evidence.Of(0, "inst")
		}},
		{"a figure that is there called missing", "is missing (not measured)", profile, func(r *evidence.Record, _ map[string]string) {
			r.Metrics["ncu.shared_bank_conflicts"] = evidence.Absent("not measured", "")
		}},
		{"another grid", "its launches are not those", profile, func(r *evidence.Record, _ map[string]string) { r.Launches[0].Grid[0]++ }},
		{"a launch twice", "its launches are not those", profile, func(r *evidence.Record, _ map[string]string) {
			r.Launches = append(r.Launches, r.Launches[0])
		}},
		{"no profiler", "which profiler", profile, func(r *evidence.Record, _ map[string]string) { r.Provenance.Profiler = "" }},
		{"no figure", "which profiler", profile, func(r *evidence.Record, _ map[string]string) { r.Metrics = nil }},
		{"a table without its last row", "", profile, func(_ *evidence.Record, raw map[string]string) {
			raw["ncu.csv"] = raw["ncu.csv"][:strings.LastIndex(strings.TrimSpace(raw["ncu.csv"]), "\n")+1]
		}},
		// of times
		{"batches ten times as long", "is not the one in its raw input", latency, func(r *evidence.Record, _ map[string]string) { times(10, r.Samples) }},
		{"one batch shorter", "is not the one in its raw input", latency, func(r *evidence.Record, _ map[string]string) { r.Samples[5].BatchesNS[0] *= 0.5 }},
		{"figures a tenth as long", "its latency.", latency, func(r *evidence.Record, _ map[string]string) {
			for name, v := range r.Metrics {
				r.Metrics[name] = evidence.Of(v.Number/10, v.Unit())
			}
		}},
		{"a sample left out", "samples", latency, func(r *evidence.Record, _ map[string]string) { r.Samples = r.Samples[1:] }},
		{"slow samples left out of both", "", latency, func(r *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `(?m)^\{"time":[^\n]*\n`, "")
			r.Samples = r.Samples[1:]
		}},
		{"another cache state", "is not the one in its raw input", latency, func(r *evidence.Record, _ map[string]string) {
			r.Samples[1].CacheState = map[evidence.CacheState]evidence.CacheState{evidence.Warm: evidence.Cold, evidence.Cold: evidence.Warm}[r.Samples[1].CacheState]
		}},
		{"throttling left out", "is not the one in its raw input", latency, func(_ *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `"throttle":\[\]`, `"throttle":["hw_slowdown"]`)
		}},
		{"calls that were not captured", "not every call was captured", latency, func(r *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `"kernel_nodes":\d+`, `"kernel_nodes":0`)
			r.Samples[0].KernelNodes = 0
		}},
		{"a process without its end", "whole processes", latency, func(_ *evidence.Record, raw map[string]string) {
			swap(raw, "harness.jsonl", `(?m)^\{"end":[^\n]*\n`, "")
		}},
		{"a time that is called impossible", "what it says of times that it cannot have", latency, func(r *evidence.Record, _ map[string]string) {
			r.Absent = map[evidence.CacheState]string{evidence.Cold: "it is too large"}
		}},
		{"no time, and no reason for that", "samples", latency, func(r *evidence.Record, raw map[string]string) {
			raw["harness.jsonl"] = regexp.MustCompile(`(?m)^\{"(begin|time)":[^\n]*\n`).ReplaceAllString(raw["harness.jsonl"], "")
			r.Samples, r.Metrics = nil, nil
		}},
		// of an experiment
		{"a head that is called impossible to time", "what it says of times that it cannot have", pair, func(r *evidence.Record, _ map[string]string) {
			r.Absent = map[evidence.CacheState]string{evidence.Warm: "it is too large"}
		}},
		{"a head half as slow", "sample 0 of the head", pair, func(r *evidence.Record, _ map[string]string) {
			for i := range r.Experiment.Rounds {
				times(0.5, r.Experiment.Rounds[i].Head)
			}
		}},
		{"a base twice as slow", "", pair, func(r *evidence.Record, _ map[string]string) {
			for i := range r.Experiment.Rounds {
				times(2, r.Experiment.Rounds[i].Base)
			}
		}},
		{"arms exchanged", "", pair, func(r *evidence.Record, _ map[string]string) {
			for i, b := range r.Experiment.Rounds {
				r.Experiment.Rounds[i].Base, r.Experiment.Rounds[i].Head = b.Head, b.Base
			}
		}},
		{"an order that was not drawn", "was never drawn", pair, func(r *evidence.Record, _ map[string]string) { r.Experiment.Rounds[0].Order = "AAAABBBB" }},
		{"a round left out", "samples of the base", pair, func(r *evidence.Record, _ map[string]string) {
			r.Experiment.Rounds = r.Experiment.Rounds[1:]
		}},
		{"a round twice", "does not come after", pair, func(r *evidence.Record, _ map[string]string) {
			r.Experiment.Rounds = append(r.Experiment.Rounds, r.Experiment.Rounds[0])
		}},
		{"a head process more", "as many processes of both arms", pair, func(r *evidence.Record, _ map[string]string) {
			b := &r.Experiment.Rounds[0]
			b.Head = append(b.Head, b.Head...)
		}},
		{"less time than its batches took", "s of batches", pair, func(r *evidence.Record, _ map[string]string) {
			r.Experiment.TimedSeconds = 0.99 * batchSeconds(r.Experiment)
		}},
		{"a pilot that launched nothing", "its pilot", pair, func(r *evidence.Record, _ map[string]string) { r.Experiment.Pilot[0].KernelNodes = 0 }},
		{"a base of another case", "its two arms", pair, func(r *evidence.Record, _ map[string]string) { r.Base.Case = "tiny" }},
		{"a base on another machine", "its two arms", pair, func(r *evidence.Record, _ map[string]string) { r.Base.Machine = "a100-00000000" }},
		{"no rounds", "", pair, func(r *evidence.Record, _ map[string]string) { r.Experiment.Rounds = nil }},
		// of sessions
		{"a session twice", "twice", sessions, func(r *evidence.Record, _ map[string]string) { r.Sessions = append(r.Sessions, r.Sessions[0]) }},
		{"a session twice in two time zones", "which is not a date in UTC", sessions, func(r *evidence.Record, _ map[string]string) {
			again := r.Sessions[0]
			again.Recorded = later(again.Recorded, 0).In(time.FixedZone("", 9*3600)).Format(time.RFC3339)
			r.Sessions = append(r.Sessions, again)
		}},
		{"a session cut into two", "twice", sessions, func(r *evidence.Record, _ map[string]string) {
			again := r.Sessions[0]
			again.Recorded = later(again.Recorded, -59*time.Minute).Format(time.RFC3339)
			r.Sessions = append(r.Sessions, again)
		}},
		{"a session of the future", "lies in the future", sessions, func(r *evidence.Record, _ map[string]string) {
			r.Sessions[0].Recorded = "2126-01-01T00:00:00Z"
		}},
		{"a session without a process", "holds no process", sessions, func(r *evidence.Record, _ map[string]string) { r.Sessions[0].Processes = nil }},
		{"a cache state that there is not", "has a cache state", sessions, func(r *evidence.Record, _ map[string]string) {
			r.Sessions[0].Processes[0].CacheState = "lukewarm"
		}},
		{"no session", "a record of its tier holds", sessions, func(r *evidence.Record, _ map[string]string) { r.Sessions = nil }},
	}
)

// later is a date some time later.
func later(date string, by time.Duration) time.Time {
	at, err := time.Parse(time.RFC3339, date)
	if err != nil {
		panic(err)
	}
	return at.Add(by)
}

// rawOf reads a record's raw inputs by their names.
func rawOf(t *testing.T, dir string, r *evidence.Record) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, raw := range r.Raw {
		data, err := os.ReadFile(filepath.Join(dir, raw.Name))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(strings.SplitN(raw.Name, ".", 3)[2], ".gz")] = string(text)
	}
	return out
}

// placeOf is the record's place in a store.
func placeOf(k evidence.Key) string {
	name := k.Name()
	if k.Compares() {
		name += "-vs-" + k.Base.Identity.Short()
	}
	of := k.At.Case // an architecture, of what the compiler says
	if k.At.Op != "" {
		of = fmt.Sprintf("%s-%s-%.8s", k.At.Op, k.At.Case, k.At.Harness)
	}
	return filepath.Join(k.At.Machine, k.At.Identity.Short(), of, name+".json")
}

// plant writes a record with raw inputs and fitting digests.
func plant(t *testing.T, path string, r *evidence.Record, raw map[string]string) {
	t.Helper()
	r.Raw = nil
	write := func(path string, data []byte) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range raw {
		var buf bytes.Buffer
		z := gzip.NewWriter(&buf)
		io.WriteString(z, text)
		z.Close()
		sum := sha256.Sum256(buf.Bytes())
		digest := hex.EncodeToString(sum[:])
		file := fmt.Sprintf("%s.%s.%s.gz", r.Tier, digest[:8], name)
		write(filepath.Join(filepath.Dir(path), file), buf.Bytes())
		r.Raw = append(r.Raw, evidence.Raw{Name: file, SHA256: digest, Bytes: int64(buf.Len())})
	}
	data, err := evidence.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	write(path, data)
}

// copyOf is a record that can be changed.
func copyOf(t *testing.T, r *evidence.Record) *evidence.Record {
	t.Helper()
	data, err := evidence.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	out, err := evidence.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestForgedRecordsAreRefused makes every kind of inconsistent record of records
// of the repository, of each that it can be made of where it is given the time.
func TestForgedRecordsAreRefused(t *testing.T) {
	a, records, made, due, most := audit(t), all(t), 0, 0, 2
	if os.Getenv("GATE_ALL_FORGERIES") != "" {
		most = len(records)
	}
	for _, f := range forgeries {
		t.Run(f.name, func(t *testing.T) {
			tried := 0
			for _, r := range records {
				if !f.of(r) || tried == most {
					continue
				}
				tried++
				k := r.Key()
				s := store.Open(t.TempDir()).Audited(a)
				path := filepath.Join(s.Name(), placeOf(k))
				forged, raw := copyOf(t, r), rawOf(t, filepath.Dir(filepath.Join(recorded, placeOf(k))), r)
				plant(t, path, copyOf(t, r), raw)
				if _, err := s.Get(k); err != nil {
					t.Fatalf("unchanged: %v", err)
				}
				f.change(forged, raw)
				plant(t, path, forged, raw)
				// A key that the forger changed as well is asked for under its place.
				ask := k
				if f.name == "a short code id" {
					ask.At.Code = forged.Address.Code
				}
				if forged.Base != nil {
					ask.Base = *forged.Base
				}
				got, err := s.Get(ask)
				if err == nil || got != nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), f.want) {
					t.Errorf("%s: %v, want %q", placeOf(k), err, f.want)
				}
				made++
			}
			if tried == 0 {
				t.Error("no record in the repository can be forged so")
			}
			due += tried
		})
	}
	if len(forgeries) < 40 || made < due {
		t.Errorf("%d kinds, %d forgeries of %d", len(forgeries), made, due)
	}
}

// TestForgedFilesAreRefused: raw inputs that are replaced, cut, packed otherwise
// or taken away, with a memory of the audit before.
func TestForgedFilesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		want   string
		change func(path string) error
	}{
		"garbage":       {"bytes, and the record says", func(p string) error { return os.WriteFile(p, []byte("garbage"), 0o644) }},
		"another digit": {"another digest", flip},
		"gone":          {"cannot be read", os.Remove},
		"empty":         {"bytes, and the record says", func(p string) error { return os.Truncate(p, 0) }},
		"a link":        {"cannot be read", func(p string) error { return swapForLink(p) }},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(filepath.Join(dir, "evidence"), os.DirFS(recorded)); err != nil {
			t.Fatal(err)
		}
		a := audit(t)
		a.Answers = disk.OpenAnswers(filepath.Join(dir, "answers"))
		s := store.Open(filepath.Join(dir, "evidence")).Audited(a)
		for _, r := range all(t) {
			if len(r.Raw) == 0 {
				continue
			}
			if _, err := s.Get(r.Key()); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(s.Name(), filepath.Dir(placeOf(r.Key())), r.Raw[0].Name)
			info, err := os.Stat(path)
			if err == nil {
				err = c.change(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			os.Chtimes(path, info.ModTime(), info.ModTime()) // as if nothing had changed
			if _, err := s.Get(r.Key()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
	}
}

func flip(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[len(data)/2] ^= 1
	return os.WriteFile(path, data, 0o644)
}

func swapForLink(path string) error {
	if err := os.Rename(path, path+".moved"); err != nil {
		return err
	}
	return os.Symlink(filepath.Base(path)+".moved", path)
}

// TestAClassThatOtherKernelsHave: a class that was left out everywhere in one
// record is missed where another kernel was checked on it.
func TestAClassThatOtherKernelsHave(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(recorded)); err != nil {
		t.Fatal(err)
	}
	shelf := store.Shelf{Read: []*store.Store{store.Open(dir).Audited(audit(t))}}
	var needs []*evidence.Need
	for _, r := range all(t) {
		if !correctness(r) {
			continue
		}
		needs = append(needs, evidence.NeedOf(r.Key()))
		if len(needs) > 1 {
			continue
		}
		path := filepath.Join(dir, placeOf(r.Key()))
		raw := rawOf(t, filepath.Dir(path), r)
		raw["harness.jsonl"] = regexp.MustCompile(`(?m)^\{"(begin|check)":[^\n]*"class":"scaled_8"[^\n]*\n|^\{"end":[^\n]*\n`).ReplaceAllString(raw["harness.jsonl"], "")
		forged := copyOf(t, r)
		forged.Checks = append(forged.Checks[:1], forged.Checks[2:]...)
		plant(t, path, forged, raw)
	}
	var l evidence.Ledger
	shelf.Load(needs, &l)
	for i, n := range needs {
		e := l.Find(n)
		if e.Measured() != (i > 0) || i == 0 && !strings.Contains(e.Unusable, `lacks the input class "scaled_8"`) {
			t.Errorf("record %d: %+v", i, e)
		}
	}
}

// batchSeconds are those of both arms; other kernels share the processes.
func batchSeconds(x *evidence.Experiment) (sum float64) {
	for _, round := range x.Rounds {
		for _, s := range slices.Concat(round.Base, round.Head) {
			for _, ns := range s.BatchesNS {
				sum += ns * float64(s.Calls) / 1e9
			}
		}
	}
	return sum
}
