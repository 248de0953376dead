package ncu

import (
	"fmt"
	"slices"
)

const maxStrings = 1 << 20

// A nameTable holds the names of metrics, which launches refer to by number. A
// report writes a name when it first occurs, and a launch can refer to names
// that a later block brings, so that numbers are resolved at the end only.
type nameTable struct{ names []string }

// next returns the table after one more part of it: the same one, grown, when
// the part holds new names only or repeats all that there are, else another,
// which begins anew and leaves the one before to the launches before.
func (t *nameTable) next(part []byte) (*nameTable, error) {
	var names []string
	err := eachField(part, func(f field) error {
		if f.num != 1 || f.wire != wireBytes {
			return nil
		}
		if len(t.names)+len(names) >= maxStrings {
			return fmt.Errorf("it names more than %d metrics", maxStrings)
		}
		names = append(names, string(f.bytes))
		return nil
	})
	switch n := len(t.names); {
	case err != nil || len(names) == 0:
	case len(names) >= n && slices.Equal(names[:n], t.names):
		t.names = names
	case t.holdsAny(names):
		return &nameTable{names}, nil
	default:
		t.names = append(t.names, names...)
	}
	return t, err
}

func (t *nameTable) holdsAny(names []string) bool {
	held := make(map[string]bool, len(t.names))
	for _, n := range t.names {
		held[n] = true
	}
	return slices.ContainsFunc(names, func(n string) bool { return held[n] })
}

// name returns the name with a number.
func (t *nameTable) name(number uint64) (string, error) {
	if number >= uint64(len(t.names)) {
		return "", fmt.Errorf("metric %d has no name in the table of %d", number, len(t.names))
	}
	return t.names[number], nil
}
