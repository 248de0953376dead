package diff

import (
	"fmt"
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/store"
)

// A Pair is two records that are compared.
type Pair struct {
	A, B       store.Found
	Comparison Comparison
}

// Pairs are records of one tier, case and machine on both sides. What the other
// side has no record for is left over.
type Pairs struct {
	Compared     []Pair
	OnlyA, OnlyB []store.Found
	Refused      []store.Found // no evidence, and compared with nothing
}

// Between holds the records of two sides against each other. A side of one
// record is compared with another of one record, whatever their case and machine.
func Between(a, b []store.Found) (Pairs, error) {
	var p Pairs
	left, right := p.usable(a), p.usable(b)
	if len(left) == 1 && len(right) == 1 {
		return p, p.add(left[0], right[0])
	}
	for _, side := range [][]store.Found{left, right} {
		if err := onceEach(side); err != nil {
			return p, err
		}
	}
	for _, l := range left {
		i := slices.IndexFunc(right, func(r store.Found) bool { return kindOf(r.Record) == kindOf(l.Record) })
		if i < 0 {
			p.OnlyA = append(p.OnlyA, l)
			continue
		}
		if err := p.add(l, right[i]); err != nil {
			return p, err
		}
		right = slices.Delete(right, i, i+1)
	}
	p.OnlyB = right
	return p, nil
}

func (p *Pairs) add(a, b store.Found) error {
	c, err := Of(a.Record, b.Record)
	if err != nil {
		return exit.Usagef("name two records of one tier", "%s and %s are not compared: %v", a.Place, b.Place, err)
	}
	p.Compared = append(p.Compared, Pair{a, b, c})
	return nil
}

// usable are the records that are evidence. The others are named, and compared
// with nothing.
func (p *Pairs) usable(all []store.Found) []store.Found {
	var out []store.Found
	for _, f := range all {
		if f.Refused == nil {
			out = append(out, f)
		} else if !slices.ContainsFunc(p.Refused, func(x store.Found) bool { return x.Place == f.Place }) {
			p.Refused = append(p.Refused, f)
		}
	}
	return out
}

// A kind is what two records have in common that are compared.
type kind struct {
	tier          evidence.Tier
	kase, machine string
	together      bool // two arms in one run
}

func kindOf(r *evidence.Record) kind {
	return kind{r.Tier, r.Address.Case, r.Address.Machine, r.Base != nil}
}

// onceEach refuses a side that names two records of one kind: which of them is
// meant is not ours to guess.
func onceEach(all []store.Found) error {
	seen := map[kind]store.Found{}
	for _, f := range all {
		k := kindOf(f.Record)
		if other, twice := seen[k]; twice {
			return exit.Usagef("name the file of the one that is meant", "there are several records of %s, case %s, tier %s: %s and %s",
				f.Record.Provenance.Kernel, k.kase, k.tier, other.Place, f.Place)
		}
		seen[k] = f
	}
	return nil
}

// Incomplete is the error of a comparison that compared nothing, or that met
// records which are not evidence; nil otherwise.
func (p Pairs) Incomplete() error {
	switch {
	case len(p.Refused) > 0:
		return inconclusive("%d of the records are refused, and are compared with nothing", len(p.Refused))
	case len(p.Compared) == 0:
		return inconclusive("the two sides have no tier, case and machine in common")
	}
	return nil
}

func inconclusive(format string, args ...any) error {
	return &exit.Error{Status: exit.Inconclusive, Err: fmt.Errorf(format, args...)}
}
