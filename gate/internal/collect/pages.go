package collect

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/kernelgate/gate/ncu"
)

// A profilePage is what ncu wrote about one call: its own lines, the heads of the table
// and the rows of that call, which is all that a record's figures follow from.
type profilePage struct {
	text     []byte
	launches []*ncu.Launch
}

// cutPages shares the rows of a table out among the calls of a process. A row does
// not say to which call it belongs: the rows come in the order of the launches, and
// the harness says which launches a call makes. Where the two disagree in anything,
// no row can be trusted to be of the call that it would be given to.
func cutPages(text []byte, launches []*ncu.Launch, units []unit, calls []profileMsg) ([]profilePage, error) {
	if err := sameCalls(units, calls); err != nil {
		return nil, err
	}
	if err := oneSeries(launches); err != nil {
		return nil, err
	}
	total := 0
	for _, m := range calls {
		total += m.KernelNodes
	}
	if total != len(launches) {
		return nil, fmt.Errorf("ncu saw %d kernel launches, and as they were captured the profiled calls make %d", len(launches), total)
	}
	var pages []profilePage
	first := 0
	for _, m := range calls {
		if err := sameLaunches(m, launches[first:first+m.KernelNodes]); err != nil {
			return nil, err
		}
		p, err := cutPage(text, launches, first, first+m.KernelNodes)
		if err != nil {
			return nil, err
		}
		pages, first = append(pages, p), first+m.KernelNodes
	}
	return pages, nil
}

// sameCalls holds what the harness profiled to what it was asked for.
func sameCalls(units []unit, calls []profileMsg) error {
	if len(calls) != len(units) {
		return fmt.Errorf("the harness profiled %d calls, and was asked for %d", len(calls), len(units))
	}
	for i, m := range calls {
		if m.Kernel != units[i].name() || m.Case != units[i].on.Name {
			return fmt.Errorf("the harness profiled %s on %s where it was asked for %s on %s", m.Kernel, m.Case, units[i].name(), units[i].on.Name)
		}
		if len(m.Launches) != m.KernelNodes {
			return fmt.Errorf("the harness names %d launches of %s and counts %d", len(m.Launches), m.Case, m.KernelNodes)
		}
		if m.Calls != 1 || m.KernelNodes < 1 {
			return fmt.Errorf("the harness profiled %d calls with %d kernel launches on %s, not one call with at least one", m.Calls, m.KernelNodes, m.Case)
		}
	}
	return nil
}

// sameLaunches holds the rows of a call to its launches as they were captured: a call
// that makes one more when it is profiled, and another that makes one fewer, add up to
// the same number of rows.
func sameLaunches(m profileMsg, rows []*ncu.Launch) error {
	for i, row := range rows {
		if want := m.Launches[i]; want != nil && (row.Grid != want.Grid || row.Block != want.Block) {
			return fmt.Errorf("launch %d of ncu's table is %s with the grid %v and the block %v, and as launch %d of %s was captured they are %v and %v",
				row.ID, row.Kernel, row.Grid, row.Block, i, m.Case, want.Grid, want.Block)
		}
	}
	return nil
}

// oneSeries requires launches of one process that ncu numbers from 0 without a gap.
func oneSeries(launches []*ncu.Launch) error {
	for i, l := range launches {
		if l.ID != i {
			return fmt.Errorf("launch %d of ncu's table has the ID %d: rows are missing or out of order", i, l.ID)
		}
		if l.Process != launches[0].Process {
			return errors.New("ncu's table holds launches of several processes")
		}
	}
	return nil
}

// cutPage takes the rows of all launches but those from first up to last out of a
// text, and reads what is left as an audit of the record will.
func cutPage(text []byte, launches []*ncu.Launch, first, last int) (profilePage, error) {
	others := map[int]bool{}
	for i, l := range launches {
		others[l.Line] = i < first || i >= last
	}
	var kept bytes.Buffer
	n := 0
	for line := range bytes.Lines(text) {
		if n++; !others[n] {
			kept.Write(line)
		}
	}
	report, err := ncu.Read(bytes.NewReader(kept.Bytes()), "ncu.csv")
	if err != nil {
		return profilePage{}, fmt.Errorf("the rows of one call cannot be cut out of ncu's table: %w", err)
	}
	ok := len(report.Launches) == last-first
	for i := 0; ok && i < len(report.Launches); i++ {
		ok = report.Launches[i].ID == launches[first+i].ID
	}
	if !ok {
		return profilePage{}, errors.New("the rows of one call cannot be cut out of ncu's table: it is not one line a launch")
	}
	return profilePage{kept.Bytes(), report.Launches}, nil
}
