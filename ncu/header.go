package ncu

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	maxColumns  = 1 << 16
	maxProcess  = 1 << 16
	headerStart = `"ID","Process ID",`
)

// A header is the first row of a table: where each column lies. NVTX options
// insert columns among the fixed ones, so all are found by name.
type header struct {
	columns []string
	at      map[string]int // fixed columns by name
	first   int            // index of the first column that is no fixed one
}

// fixedColumns identify a launch. Process Name and Host Name are recognised
// only to be left out.
var fixedColumns = map[string]bool{
	"ID": true, "Process ID": true, "Process Name": true, "Host Name": true, "Kernel Name": true,
	"Kernel Time": true, "Context": true, "Stream": true, "Block Size": true, "Grid Size": true,
	"Device": true, "CC": true,
}

func newHeader(row string) (*header, error) {
	columns, err := splitFields(nil, row)
	if err != nil {
		return nil, err
	}
	if len(columns) > maxColumns {
		return nil, fmt.Errorf("the header has %d columns, more than %d", len(columns), maxColumns)
	}
	h := &header{columns: columns, at: make(map[string]int)}
	for i, c := range columns {
		if !fixedColumns[c] {
			continue
		}
		if _, twice := h.at[c]; twice {
			return nil, fmt.Errorf("column %q occurs twice in the header", c)
		}
		h.at[c] = i
		h.first = i + 1
	}
	for _, c := range []string{"ID", "Kernel Name"} {
		if _, ok := h.at[c]; !ok {
			return nil, fmt.Errorf("the header has no column %q", c)
		}
	}
	return h, nil
}

func (h *header) index(column string) int {
	for i, c := range h.columns {
		if c == column {
			return i
		}
	}
	return -1
}

// nvtxColumn reports the columns that --nvtx adds. Their names spell out the
// layout of the range that they describe.
func nvtxColumn(name string) bool {
	return strings.Contains(name, "Push/Pop_Range") || strings.Contains(name, "Start/Stop_Range")
}

// identify fills the fixed fields of a launch from the leading fields of a row.
func (h *header) identify(l *Launch, fields []string) error {
	get := func(column string) string {
		if i, ok := h.at[column]; ok && i < len(fields) {
			return fields[i]
		}
		return ""
	}
	for column, dst := range map[string]*int{
		"ID": &l.ID, "Process ID": &l.Process, "Context": &l.Context, "Stream": &l.Stream, "Device": &l.Device,
	} {
		if err := cellInt(dst, get(column)); err != nil {
			return fmt.Errorf("column %q: %w", column, err)
		}
	}
	if err := cellDim(&l.Block, get("Block Size")); err != nil {
		return fmt.Errorf("column %q: %w", "Block Size", err)
	}
	if err := cellDim(&l.Grid, get("Grid Size")); err != nil {
		return fmt.Errorf("column %q: %w", "Grid Size", err)
	}
	l.CC = strings.Clone(get("CC"))
	if l.CC != "" && !validCC(l.CC) {
		return fmt.Errorf("column %q: %q is no compute capability", "CC", l.CC)
	}
	l.Kernel = strings.Clone(get("Kernel Name"))
	if l.Kernel == "" {
		return fmt.Errorf("column %q is empty", "Kernel Name")
	}
	l.Key = NameKey(l.Kernel)
	return nil
}

// cellInt reads an identifying number; ncu leaves the cell of a column that
// does not apply empty.
func cellInt(dst *int, s string) error {
	if s == "" {
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return fmt.Errorf("%q is no number below 2^31", s)
	}
	*dst = int(n)
	return nil
}

// cellDim reads "(256, 1, 1)".
func cellDim(dst *[3]int, s string) error {
	if s == "" {
		return nil
	}
	inner, ok := strings.CutPrefix(s, "(")
	inner, closed := strings.CutSuffix(inner, ")")
	parts := strings.Split(inner, ", ")
	if !ok || !closed || len(parts) != 3 {
		return fmt.Errorf("%q is no size of three numbers", s)
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil {
			return fmt.Errorf("%q is no size of three numbers", s)
		}
		dst[i] = int(n)
	}
	return nil
}

// validCC accepts major.minor.
func validCC(s string) bool {
	major, minor, ok := strings.Cut(s, ".")
	if !ok {
		return false
	}
	for _, p := range []string{major, minor} {
		if n, err := strconv.ParseUint(p, 10, 8); err != nil || n > 99 {
			return false
		}
	}
	return true
}

// order checks that launches come in the order in which ncu numbers them: a
// sorted or shuffled file would split launches and mislead the matching.
type order struct{ last map[int]int }

func (o *order) add(process, id int) error {
	if o.last == nil {
		o.last = make(map[int]int)
	}
	last, seen := o.last[process]
	if seen && id <= last {
		return fmt.Errorf("launch %d follows launch %d: the rows were reordered", id, last)
	}
	if !seen && len(o.last) >= maxProcess {
		return fmt.Errorf("the table has more than %d processes", maxProcess)
	}
	o.last[process] = id
	return nil
}
