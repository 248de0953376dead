package collect

import (
	"bytes"
	"errors"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/strictjson"
)

// setAbsent writes into a record of times in which states of the caches it has none, by
// what the harness says in the raw inputs.
func setAbsent(r *evidence.Record, raw map[string][]byte) {
	r.Absent = absences(r, headLines(r, raw))
	addAbsent(r.Metrics, r)
}

// absences are the states without a time, and why. A state in which any process has a
// time is not among them.
func absences(r *evidence.Record, lines []byte) map[evidence.CacheState]string {
	var out map[evidence.CacheState]string
	for line := range bytes.Lines(lines) {
		var m message
		if !bytes.HasPrefix(line, []byte(`{"absent":`)) || strictjson.Decode(bytes.TrimSuffix(line, []byte("\n")), maxLine, &m) != nil {
			continue
		}
		state := evidence.CacheState(m.Absent.Regime)
		if m.Absent.Reason == "" || state != evidence.Warm && state != evidence.Cold || r.Timed(state) {
			continue
		}
		if out == nil {
			out = map[evidence.CacheState]string{}
		}
		out[state] = m.Absent.Reason
	}
	return out
}

// addAbsent names the figures that a record lacks because the case has no such time.
func addAbsent(to evidence.Metrics, r *evidence.Record) {
	for _, m := range metric.All() {
		if why := r.Untimed(m.CacheState); m.Time() && why != "" {
			to[m.Name] = evidence.Absent(why, m.Unit)
		}
	}
}

// auditAbsent requires that the raw input of a record gives the reason for each state
// that the record calls absent. A record may name fewer states than its raw input: it
// then answers less.
func auditAbsent(r *evidence.Record, raw map[string][]byte) error {
	said := absences(r, headLines(r, raw))
	for state, why := range r.Absent {
		if why == "" || said[state] != why {
			return errors.New("what it says of times that it cannot have is not in its raw input")
		}
	}
	return nil
}
