package collect

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/strictjson"
)

// capacityOf is what the first line of a raw input says of the speed of the card;
// nil where it does not say all of it.
func capacityOf(raw []byte) *evidence.Capacity {
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	var m message
	var c evidence.Capacity
	if strictjson.Decode(line, maxLine, &m) != nil || m.Config == nil || json.Unmarshal(m.Config.Device, &c) != nil || !c.Known() {
		return nil
	}
	return &c
}

// auditCapacity holds what a record says of the speed of its card against its raw
// input. Only times have it.
func auditCapacity(r *evidence.Record, raw map[string][]byte) error {
	var want *evidence.Capacity
	switch {
	case r.Tier == evidence.Latency && r.Base != nil:
		want = capacityOf(raw["head.jsonl"])
	case r.Tier == evidence.Latency:
		want = capacityOf(raw["harness.jsonl"])
	}
	if !reflect.DeepEqual(r.Capacity, want) {
		return errors.New("what it says of the speed of its card is not in its raw input")
	}
	return nil
}
