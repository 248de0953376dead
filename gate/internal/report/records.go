package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/store"
)

// An exhibit is a record with its file, what the audit says of it, and how old it is.
type exhibit struct {
	Place    string           `json:"place"`
	Name     string           `json:"name,omitempty"`
	Recorded string           `json:"recorded,omitempty"`
	Audit    string           `json:"audit"` // "consistent", or why it is not evidence
	AgeDays  *int             `json:"age_days,omitempty"`
	Record   *evidence.Record `json:"record,omitempty"`
}

// consistent is what the audit says of a record that agrees with its raw inputs.
const consistent = "consistent"

func show(f store.Found, now time.Time) exhibit {
	s := exhibit{Place: f.Place, Audit: consistent, Record: f.Record}
	if f.Refused != nil {
		s.Audit = f.Refused.Error()
	}
	if f.Record == nil {
		return s
	}
	if at, err := time.Parse(time.RFC3339, f.Record.Provenance.Recorded); err == nil {
		days := int(now.Sub(at) / (24 * time.Hour))
		s.AgeDays = &days
	}
	return s
}

// WriteShown shows records whole: their figures, where they come from, how old
// they are, and whether they are evidence.
func WriteShown(w io.Writer, found []store.Found, now time.Time, format string) error {
	var all []exhibit
	for _, f := range found {
		all = append(all, show(f, now))
	}
	if format == "json" {
		return writeJSON(w, map[string]any{"schema": "gate/shown/v1", "records": all})
	}
	for i, s := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := s.write(w); err != nil {
			return err
		}
	}
	return nil
}

func (s exhibit) write(w io.Writer) error {
	r := s.Record
	if r == nil {
		_, err := fmt.Fprintf(w, "%s\n  audit     refused: %s\n", printable.Line(s.Place), printable.Line(s.Audit))
		return err
	}
	audit := "consistent with its raw inputs"
	if s.Audit != consistent {
		audit = "refused: " + s.Audit
	}
	age := ""
	if s.AgeDays != nil {
		age = fmt.Sprintf(", %s ago", plural(*s.AgeDays, "day"))
	}
	p, a := r.Provenance, r.Address
	lines := [][2]string{
		{"place", s.Place}, {"audit", audit}, {"recorded", p.Recorded + age}, {"commit", p.Commit}, {"code", a.Code}, {"host", a.Host}, {"against", against(r)},
		{"harness", a.Harness}, {"made by", strings.Join(slices.DeleteFunc([]string{"nvcc " + p.Compiler, p.Profiler, p.Protocol}, empty), ", ")},
		{"machine", machineOf(r)}, {"holds", holds(r)},
	}
	for _, raw := range r.Raw {
		lines = append(lines, [2]string{"raw", fmt.Sprintf("%s, %s", raw.Name, size(raw.Bytes))})
	}
	fmt.Fprintf(w, "%s\n", printable.Line(title(r)))
	for _, l := range lines {
		if l[1] != "" {
			fmt.Fprintf(w, "  %-9s %s\n", l[0], printable.Line(l[1]))
		}
	}
	rows := metricRows("", r.Metrics)
	for _, entry := range slices.Sorted(maps.Keys(r.Entries)) {
		rows = append(rows, metricRows(entry, r.Entries[entry])...)
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return writeTable(w, []string{"metric", "figure", "of"}, rows)
}

func empty(s string) bool { return s == "" }

// title names a record as a selector does.
func title(r *evidence.Record) string {
	return fmt.Sprintf("%s:%s:%s", r.Provenance.Kernel, r.Address.Case, r.Key().Name())
}

func against(r *evidence.Record) string {
	if r.Base == nil {
		return ""
	}
	return r.Base.Code + " " + r.Base.Host
}

func machineOf(r *evidence.Record) string {
	if r.Provenance.Machine == (evidence.Machine{}) {
		return ""
	}
	return fmt.Sprintf("%s (%s)%s", r.Provenance.Machine, r.Address.Machine, strings.TrimSuffix(", card "+r.Provenance.Card, ", card "))
}

// holds says how much was measured.
func holds(r *evidence.Record) string {
	var parts []string
	for _, x := range []struct {
		n    int
		what string
	}{{len(r.Checks), "input class"}, {len(r.Launches), "launch"}, {len(r.Samples), "process"}, {len(r.Sessions), "session"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", x.what, x.n))
		}
	}
	if x := r.Experiment; x != nil {
		parts = append(parts, fmt.Sprintf("rounds: %d, ended by %s", len(x.Rounds), cmp.Or(x.Stopped, "an interrupt")))
	}
	return strings.Join(parts, ", ")
}

func metricRows(entry string, m evidence.Metrics) [][]string {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		rows = append(rows, []string{name, figureText(m[name]), cmp.Or(entry, m[name].Where())})
	}
	return rows
}

func figureText(v evidence.Value) string {
	if !v.Known() {
		return v.Missing()
	}
	return metric.Show(v.Number, v.Unit())
}
