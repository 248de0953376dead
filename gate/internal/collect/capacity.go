package collect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/roof"
	"github.com/kernelgate/gate/gate/internal/strictjson"
)

// No card does as much in a nanosecond, so a peak that reaches one of these was never
// measured. Both leave room for faster cards.
const (
	// mostBytesPerNS is 100 TB/s. The L2 of an H200 gives 8 TB/s, and the memory of a
	// B200 as much.
	mostBytesPerNS = 1e5
	// mostFlopsPerNS is 100 PFLOPS. The tensor cores of a B200 do 5 PFLOPS on 8 bits, which
	// is the narrowest type that is measured.
	mostFlopsPerNS = 1e8
)

// most is the highest rate. A kernel may only read, and reading can be faster than
// copying; so the highest one bounds.
func (t trafficMsg) most() float64 { return max(t.Read, t.Write, t.Copy) }

// valid says what is wrong with peaks that cannot be used.
func (p peaksMsg) valid() error {
	for _, rate := range []float64{p.Cold.Read, p.Cold.Write, p.Cold.Copy, p.Warm.Read, p.Warm.Write, p.Warm.Copy} {
		if !(rate > 0 && rate < mostBytesPerNS) {
			return fmt.Errorf("a peak of %v bytes a nanosecond was never measured", rate)
		}
	}
	for unit, rate := range p.Flops {
		if !slices.Contains(roof.Units, unit) {
			return fmt.Errorf("the peaks are of %q, which no op can state", unit)
		}
		if !(rate > 0 && rate < mostFlopsPerNS) {
			return fmt.Errorf("a peak of %v operations a nanosecond was never measured", rate)
		}
	}
	for _, unit := range roof.Units {
		if _, known := p.Flops[unit]; known == (p.Absent[unit] != "") {
			return fmt.Errorf("the peaks say neither how fast %s is nor why that is not known, or both", unit)
		}
	}
	return nil
}

// capacityOf is what the first process of a raw input says of its card's L2, and the
// highest peaks of all its processes: what a card did once is what it can do, and no
// kernel was loaded yet. It is nil where a process does not say it.
func capacityOf(raw []byte) *evidence.Capacity {
	var c *evidence.Capacity
	configs, peaks := 0, 0
	for line := range bytes.Lines(raw) {
		var m message
		if strictjson.Decode(bytes.TrimSuffix(line, []byte("\n")), maxLine, &m) != nil {
			return nil
		}
		switch {
		case m.Config != nil:
			if configs++; configs > 1 {
				continue
			}
			var device struct {
				L2Bytes int `json:"l2_bytes"`
			}
			if json.Unmarshal(m.Config.Device, &device) != nil || device.L2Bytes <= 0 {
				return nil
			}
			c = &evidence.Capacity{L2Bytes: device.L2Bytes}
		case m.Peaks != nil:
			if peaks++; c == nil || m.Peaks.valid() != nil {
				return nil
			}
			raise(c, *m.Peaks)
		}
	}
	if configs != peaks {
		return nil
	}
	return c
}

// raise takes what is higher in the peaks of one more process.
func raise(c *evidence.Capacity, p peaksMsg) {
	c.ColdBytesPerNS, c.WarmBytesPerNS = max(c.ColdBytesPerNS, p.Cold.most()), max(c.WarmBytesPerNS, p.Warm.most())
	if c.FlopsPerNS == nil {
		c.FlopsPerNS = map[string]float64{}
	}
	for unit, rate := range p.Flops {
		c.FlopsPerNS[unit] = max(c.FlopsPerNS[unit], rate)
	}
	for unit, why := range p.Absent {
		if c.Absent == nil {
			c.Absent = map[string]string{}
		}
		c.Absent[unit] = why
	}
	maps.DeleteFunc(c.Absent, func(unit, _ string) bool { return c.FlopsPerNS[unit] > 0 })
}

// auditCapacity holds what a record says of the speed of its card against its raw
// input. Only times have it.
func auditCapacity(r *evidence.Record, raw map[string][]byte) error {
	if !reflect.DeepEqual(r.Capacity, capacityOf(headLines(r, raw))) {
		return errors.New("what it says of the speed of its card is not in its raw input")
	}
	return nil
}

// headLines are what the harness said of the head of a record of times, of its base
// where the pilot is all that was timed; nil for every other record.
func headLines(r *evidence.Record, raw map[string][]byte) []byte {
	switch {
	case r.Tier != evidence.Latency:
		return nil
	case r.Base != nil && raw["pilot.jsonl"] != nil:
		return raw["pilot.jsonl"]
	case r.Base != nil:
		return raw["head.jsonl"]
	}
	return raw["harness.jsonl"]
}
