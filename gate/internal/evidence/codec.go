package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/gate/gate/internal/strictjson"
)

// MaxRecord bounds the JSON of one record.
const MaxRecord = 8 << 20

// MarshalJSON writes a missing value without a number, so that no reader can
// mistake absence for zero.
func (v Value) MarshalJSON() ([]byte, error) {
	t := v.said()
	if !t.known {
		reason := t.missing
		if reason == "" {
			reason = "not measured"
		}
		return json.Marshal(struct {
			Missing string `json:"missing"`
			Unit    string `json:"unit,omitempty"`
			Where   string `json:"where,omitempty"`
		}{reason, t.unit, t.where})
	}
	return json.Marshal(struct {
		Number float64 `json:"value"`
		Unit   string  `json:"unit,omitempty"`
		Where  string  `json:"where,omitempty"`
	}{v.Number, t.unit, t.where})
}

// UnmarshalJSON accepts a number or a reason, never both and never neither.
func (v *Value) UnmarshalJSON(data []byte) error {
	var raw struct {
		Number  *float64 `json:"value"`
		Unit    string   `json:"unit"`
		Missing string   `json:"missing"`
		Where   string   `json:"where"`
	}
	if err := strictjson.Fields(data, &raw); err != nil {
		return err
	}
	switch {
	case raw.Number != nil && raw.Missing != "":
		return errors.New("a metric has both a value and a reason for having none")
	case raw.Number == nil && raw.Missing == "":
		return errors.New("a metric has neither a value nor a reason for having none")
	case raw.Number == nil:
		*v = Absent(raw.Missing, raw.Unit)
	default:
		*v = Of(*raw.Number, raw.Unit)
	}
	if raw.Where != "" {
		*v = v.In(raw.Where)
	}
	return nil
}

// Encode writes a record as indented JSON with a final newline.
func Encode(r *Record) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(r); err != nil {
		return nil, fmt.Errorf("encoding evidence: %w", err)
	}
	return buf.Bytes(), nil
}

// Digest names a record by its content.
func Digest(r *Record) (string, error) {
	data, err := Encode(r)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// Decode reads one record. Unknown fields, duplicate keys, a second document,
// another schema and figures that cannot be times are refused.
func Decode(data []byte) (*Record, error) {
	var r Record
	if err := strictjson.Decode(data, MaxRecord, &r); err != nil {
		return nil, err
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("the schema is %q, this gate reads %q", r.Schema, Schema)
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	return &r, nil
}

// maxDuration is the longest time of one call that is believed, in ns.
const maxDuration = 1e12

func (r *Record) validate() error {
	if !r.Address.Known() {
		return errors.New("the record has no code id or no host id")
	}
	if r.Tier == Sanitizer && !slices.Contains(Sanitizers, r.Tool) || r.Tier != Sanitizer && r.Tool != "" {
		return fmt.Errorf("a record of the tier %q cannot be of the tool %q", r.Tier, r.Tool)
	}
	if r.Base != nil && !r.Base.Known() {
		return errors.New("the other arm of the record has no code id or no host id")
	}
	samples := append([]Sample(nil), r.Samples...)
	if r.Experiment != nil {
		samples = append(samples, r.Experiment.Pilot...)
		for _, b := range r.Experiment.Rounds {
			samples = append(append(samples, b.Base...), b.Head...)
		}
	}
	for _, s := range samples {
		for _, t := range s.BatchesNS {
			if !isTime(t) {
				return fmt.Errorf("a batch time of %v ns is not a time", t)
			}
		}
	}
	for _, s := range r.Sessions {
		if _, err := time.Parse(time.RFC3339, s.Recorded); err != nil {
			return fmt.Errorf("a session is dated %q, which is not a date", s.Recorded)
		}
		for _, l := range s.Processes {
			if !isTime(l.Typical) || !isTime(l.Mean) {
				return fmt.Errorf("a process of the session of %s took %v ns, on average %v ns: that is not a time", s.Recorded, l.Typical, l.Mean)
			}
		}
	}
	return nil
}

// isTime holds for a time of one call, in ns. Written so that NaN fails it.
func isTime(t float64) bool { return t > 0 && t <= maxDuration }
