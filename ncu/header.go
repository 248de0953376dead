package ncu

import (
	"errors"
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
	fixed   [len(fixedNames)]int // places of the fixed columns, -1 for absent ones
	first   int                  // the first column behind the fixed ones
	names   map[string]kernelName
	order   order
}

// The fixed columns identify a launch. Process Name and Host Name are
// recognised only to be left out.
const (
	colID = iota
	colProcess
	colKernel
	colContext
	colStream
	colBlock
	colGrid
	colDevice
	colCC
)

var fixedNames = [...]string{
	colID: "ID", colProcess: "Process ID", colKernel: "Kernel Name", colContext: "Context", colStream: "Stream",
	colBlock: "Block Size", colGrid: "Grid Size", colDevice: "Device", colCC: "CC", 9: "Process Name", 10: "Host Name", 11: "Kernel Time",
}

// fixedColumn returns the number of a fixed column.
func fixedColumn(name string) (int, bool) {
	for i, n := range fixedNames {
		if n == name {
			return i, true
		}
	}
	return 0, false
}

func newHeader(row string) (*header, error) {
	columns, err := splitFields(nil, row)
	if err != nil {
		return nil, err
	}
	if len(columns) > maxColumns {
		return nil, fmt.Errorf("the header has %d columns, more than %d", len(columns), maxColumns)
	}
	h := &header{columns: columns, names: make(map[string]kernelName)}
	for i := range h.fixed {
		h.fixed[i] = -1
	}
	for i, c := range columns {
		n, ok := fixedColumn(c)
		if !ok {
			continue
		}
		if h.fixed[n] >= 0 {
			return nil, fmt.Errorf("column %q occurs twice in the header", c)
		}
		h.fixed[n] = i
		h.first = i + 1
	}
	for _, n := range []int{colID, colKernel} {
		if h.fixed[n] < 0 {
			return nil, fmt.Errorf("the header has no column %q", fixedNames[n])
		}
	}
	for _, n := range newerColumns {
		if (h.fixed[n] < 0) != (h.fixed[newerColumns[0]] < 0) {
			return nil, fmt.Errorf("the header has some of the columns %q, %q, %q and %q, and not all", fixedNames[colBlock], fixedNames[colGrid], fixedNames[colDevice], fixedNames[colCC])
		}
	}
	return h, nil
}

// newerColumns came together, with release 2023.1.
var newerColumns = []int{colBlock, colGrid, colDevice, colCC}

func (h *header) column(name string) int {
	for i, c := range h.columns {
		if c == name {
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
	get := func(column int) string {
		if i := h.fixed[column]; i >= 0 && i < len(fields) {
			return fields[i]
		}
		return ""
	}
	failed := func(column int, err error) error {
		return fmt.Errorf("column %q: %w", fixedNames[column], err)
	}
	for _, c := range [...]struct {
		column int
		dst    *int
	}{{colID, &l.ID}, {colProcess, &l.Process}, {colContext, &l.Context}, {colStream, &l.Stream}, {colDevice, &l.Device}} {
		if c.column <= colProcess && get(c.column) == "" {
			return failed(c.column, errors.New("is empty"))
		}
		if err := cellInt(c.dst, get(c.column)); err != nil {
			return failed(c.column, err)
		}
	}
	if err := cellDim(&l.Block, get(colBlock)); err != nil {
		return failed(colBlock, err)
	}
	if err := cellDim(&l.Grid, get(colGrid)); err != nil {
		return failed(colGrid, err)
	}
	if l.CC = get(colCC); l.CC != "" && !validCC(l.CC) {
		return failed(colCC, fmt.Errorf("%q is not a compute capability", l.CC))
	}
	name := h.kernel(get(colKernel))
	if name.printed == "" {
		return fmt.Errorf("column %q is empty", fixedNames[colKernel])
	}
	l.Kernel, l.Key = name.printed, name.key
	return nil
}

// A kernelName is a name with its key. Most launches of a file share a few.
type kernelName struct{ printed, key string }

const (
	maxKernelNames = 4096 // that are remembered
	maxKernelName  = 4096 // bytes of one that is remembered
)

func (h *header) kernel(printed string) kernelName {
	if n, ok := h.names[printed]; ok {
		return n
	}
	n := kernelName{strings.Clone(printed), NameKey(printed)}
	if len(h.names) < maxKernelNames && len(printed) <= maxKernelName {
		h.names[n.printed] = n
	}
	return n
}

// cellInt reads an identifying number; ncu leaves the cell of a column that
// does not apply empty.
func cellInt(dst *int, s string) error {
	if s == "" {
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return fmt.Errorf("%q is not a number below 2^31", s)
	}
	*dst = int(n)
	return nil
}

// cellDim reads "(256, 1, 1)".
func cellDim(dst *[3]int, s string) error {
	if s == "" {
		return nil
	}
	rest, ok := strings.CutPrefix(s, "(")
	for i, end := range []string{", ", ", ", ")"} {
		var number string
		number, rest, _ = strings.Cut(rest, end)
		n, err := strconv.ParseUint(number, 10, 31)
		if !ok || err != nil {
			return fmt.Errorf("%q is not a size of three numbers", s)
		}
		dst[i] = int(n)
	}
	if rest != "" || s[len(s)-1] != ')' {
		return fmt.Errorf("%q is not a size of three numbers", s)
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
