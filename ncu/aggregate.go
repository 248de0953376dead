package ncu

import (
	"fmt"
	"sort"
)

// Aggregate computes a metric over all launches of one call of a kernel. Totals
// add up, limits take the least, and shares become the mean weighted by the
// duration of the launches. One launch without a value leaves the whole without
// one.
func Aggregate(cc string, call []*Launch, name string) (Value, error) {
	m, ok := Lookup(name)
	if !ok {
		return Value{Kind: Unavailable, Reason: fmt.Sprintf("there is no metric %q", name)}, nil
	}
	if len(call) == 0 {
		return missing("no launch"), nil
	}
	values, lacking, err := deriveAll(cc, call, name)
	if err != nil || lacking.Kind != Number {
		return lacking, err
	}
	if len(call) == 1 {
		return values[0], nil
	}
	if m.Over == Mean {
		return weightedMean(cc, call, values)
	}
	out := values[0]
	for _, v := range values[1:] {
		switch {
		case m.Over == Sum:
			out.Number += v.Number
		case m.Over == Max && v.Number > out.Number, m.Over == Min && v.Number < out.Number:
			out.Number = v.Number
		}
	}
	return out, nil
}

// deriveAll derives a metric for each launch. When one of them has no number,
// lacking says so; otherwise lacking is a Number without a meaning.
func deriveAll(cc string, launches []*Launch, name string) (values []Value, lacking Value, err error) {
	for _, l := range launches {
		v, err := Derive(cc, l, name)
		if err != nil {
			return nil, Value{}, err
		}
		if v.Kind == Number && len(values) > 0 && v.Unit != values[0].Unit {
			v = missing(fmt.Sprintf("its unit is %q, another launch has %q", v.Unit, values[0].Unit))
		}
		if v.Kind == Text {
			v = missing(fmt.Sprintf("ncu printed %q", clip(v.Text, 40)))
		}
		if v.Kind != Number {
			if v.Kind == Missing && len(launches) > 1 {
				v.Reason = fmt.Sprintf("launch %d (%s): %s", l.ID, clip(l.Kernel, 60), v.Reason)
			}
			return nil, v, nil
		}
		values = append(values, v)
	}
	return values, Value{Kind: Number}, nil
}

// weightedMean weights by duration: an occupancy of a launch that takes nine
// tenths of the time is nine tenths of the answer.
func weightedMean(cc string, call []*Launch, values []Value) (Value, error) {
	weights, lacking, err := deriveAll(cc, call, RawPrefix+durationCounter)
	if err != nil || lacking.Kind != Number {
		return lacking, err
	}
	var total, sum float64
	for i, w := range weights {
		if w.Number < 0 {
			return missing(durationCounter + " is negative"), nil
		}
		total += w.Number
		sum += w.Number * values[i].Number
	}
	if total == 0 {
		return missing(durationCounter + " is 0 for every launch"), nil
	}
	out := values[0]
	out.Number = sum / total
	return out, nil
}

// Median returns the median of a metric over equal launches, such as those of
// one Group. One launch without a value leaves the whole without one.
func Median(cc string, launches []*Launch, name string) (Value, error) {
	if len(launches) == 0 {
		return missing("no launch"), nil
	}
	values, lacking, err := deriveAll(cc, launches, name)
	if err != nil || lacking.Kind != Number {
		return lacking, err
	}
	sort.Slice(values, func(i, j int) bool { return values[i].Number < values[j].Number })
	out := values[len(values)/2]
	if len(values)%2 == 0 {
		out.Number = (values[len(values)/2-1].Number + out.Number) / 2
	}
	return out, nil
}
