package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kernelgate/gate/gate/internal/cache"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, value any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return err
	}
	_, err := w.Write(printable.JSON(buf.Bytes()))
	return err
}

// writeTable aligns columns. A cell is one line of printable text.
func writeTable(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.ToUpper(strings.Join(header, "\t")))
	for _, row := range rows {
		for i, cell := range row {
			end := "\t"
			if i == len(row)-1 {
				end = "\n"
			}
			fmt.Fprint(tw, cmp.Or(printable.Line(cell), "—"), end)
		}
	}
	return tw.Flush()
}

// writeList writes rows as a table, or as JSON: an object with the schema and,
// under a name, one object for each row with the header's words as keys.
func writeList(w io.Writer, format, name string, header []string, rows [][]string) error {
	if format != "json" {
		return writeTable(w, header, rows)
	}
	list := []map[string]string{}
	for _, row := range rows {
		object := map[string]string{}
		for i, cell := range row {
			object[header[i]] = cell
		}
		list = append(list, object)
	}
	return writeJSON(w, map[string]any{"schema": "gate/" + name + "/v1", name: list})
}

// WriteRecords lists records of evidence by kernel, case, tier and date, which
// is the order that a reader looks them up in.
func WriteRecords(w io.Writer, records []*evidence.Record, format string) error {
	digits := 12
	if format == "json" {
		digits = 64
	}
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b *evidence.Record) int {
		return cmp.Or(strings.Compare(a.Provenance.Kernel, b.Provenance.Kernel), strings.Compare(a.Address.Case, b.Address.Case),
			strings.Compare(string(a.Tier), string(b.Tier)), strings.Compare(a.Provenance.Recorded, b.Provenance.Recorded))
	})
	var rows [][]string
	for _, r := range records {
		a := r.Address
		rows = append(rows, []string{r.Provenance.Kernel, a.Case, string(r.Tier), cut(a.Code, digits), cut(a.Host, digits), a.Machine, r.Provenance.Recorded})
	}
	return writeList(w, format, "records", []string{"kernel", "case", "tier", "code", "host", "machine", "recorded"}, rows)
}

func cut(id string, digits int) string { return id[:min(digits, len(id))] }

// WriteMetrics lists the metrics that a policy can name.
func WriteMetrics(w io.Writer, metrics []metric.Metric, format string) error {
	var rows [][]string
	for _, m := range metrics {
		rows = append(rows, []string{m.Name, m.Unit, m.Better.String(), m.Exactness(), string(m.Tier), m.Chips, m.Doc})
	}
	return writeList(w, format, "metrics", []string{"metric", "unit", "better", "exactness", "tier", "chips", "meaning"}, rows)
}

// WriteToolchains lists compilers, the one that is used first.
func WriteToolchains(w io.Writer, found []*toolchain.Toolchain, format string) error {
	var rows [][]string
	for i, t := range found {
		used := "no"
		if i == 0 {
			used = "yes"
		}
		rows = append(rows, []string{t.Version, string(t.Source), used, t.NVCC})
	}
	return writeList(w, format, "toolchains", []string{"version", "source", "used", "nvcc"}, rows)
}

// WriteCache says how large the cache is.
func WriteCache(w io.Writer, l cache.Listing, format string) error {
	if format == "json" {
		return writeJSON(w, l)
	}
	var rows [][]string
	for _, s := range l.Kinds {
		rows = append(rows, []string{s.Kind, fmt.Sprint(s.Pieces), size(s.Bytes)})
	}
	if err := writeTable(w, []string{"kind", "pieces", "size"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s in %s\n", size(l.Bytes()), printable.Line(l.Folder))
	return err
}

// WriteCleaned says what was removed from the cache, and what was spared.
func WriteCleaned(w io.Writer, removed cache.Listing, evidence bool) error {
	pieces, parts := 0, []string{}
	for _, s := range removed.Kinds {
		if pieces += s.Pieces; s.Pieces > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", s.Kind, size(s.Bytes)))
		}
	}
	text := "nothing was removed"
	if pieces > 0 {
		text = fmt.Sprintf("%s of %s removed: %s", size(removed.Bytes()), plural(pieces, "piece"), strings.Join(parts, ", "))
	}
	if !evidence {
		text += "; evidence is kept (--evidence removes it, too)"
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// size writes bytes as people say them.
func size(bytes int64) string {
	units, n, i := []string{"B", "kB", "MB", "GB", "TB"}, float64(bytes), 0
	for n >= 1000 && i < len(units)-1 {
		n, i = n/1000, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %s", n, units[i])
}
