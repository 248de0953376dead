package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxRecord bounds the JSON of one record.
const MaxRecord = 8 << 20

// MarshalJSON writes a missing value without a number, so that no reader can
// mistake absence for zero.
func (v Value) MarshalJSON() ([]byte, error) {
	if !v.known {
		reason := v.Missing
		if reason == "" {
			reason = "not measured"
		}
		return json.Marshal(struct {
			Missing string `json:"missing"`
			Unit    string `json:"unit,omitempty"`
		}{reason, v.Unit})
	}
	return json.Marshal(struct {
		Number float64 `json:"value"`
		Unit   string  `json:"unit,omitempty"`
	}{v.Number, v.Unit})
}

// UnmarshalJSON accepts a number or a reason, never both and never neither.
func (v *Value) UnmarshalJSON(data []byte) error {
	var raw struct {
		Number  *float64 `json:"value"`
		Unit    string   `json:"unit"`
		Missing string   `json:"missing"`
	}
	if err := strict(data, &raw); err != nil {
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

// Decode reads one record. Unknown fields, duplicate keys, a second document,
// another schema and figures that cannot be times are refused.
func Decode(data []byte) (*Record, error) {
	if len(data) > MaxRecord {
		return nil, fmt.Errorf("the record is larger than %d bytes", MaxRecord)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("the record is not UTF-8")
	}
	if err := RejectDuplicateKeys(data); err != nil {
		return nil, err
	}
	var r Record
	if err := strict(data, &r); err != nil {
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

func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("data follows the record")
	}
	return nil
}

// maxDuration is the longest time of one call that is believed, in ns.
const maxDuration = 1e12

func (r *Record) validate() error {
	if !r.Address.Known() {
		return errors.New("the record has no code id or no host id")
	}
	samples := append([]Sample(nil), r.Samples...)
	if r.Experiment != nil {
		samples = append(samples, r.Experiment.Pilot...)
		for _, b := range r.Experiment.Blocks {
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
			return fmt.Errorf("a session is dated %q, which is no date", s.Recorded)
		}
		for _, l := range s.Launches {
			if !isTime(l.Typical) || !isTime(l.Mean) {
				return fmt.Errorf("a launch of the session of %s took %v ns, on average %v ns: that is no time", s.Recorded, l.Typical, l.Mean)
			}
		}
	}
	return nil
}

// isTime holds for a time of one call, in ns. Written so that NaN fails it.
func isTime(t float64) bool { return t > 0 && t <= maxDuration }

// maxDepth bounds the nesting of any JSON that gate reads.
const maxDepth = 64

// RejectDuplicateKeys fails on an object that names a key twice: the standard
// decoder keeps the last one silently, and matches keys regardless of case.
func RejectDuplicateKeys(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	err := walk(dec, 0)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON is cut short")
	}
	return err
}

func walk(dec *json.Decoder, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the JSON is nested deeper than %d", maxDepth)
	}
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for dec.More() {
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			name := foldKey(key)
			if seen[name] {
				return fmt.Errorf("the key %q appears twice in one object", key)
			}
			seen[name] = true
		}
		if err := walk(dec, depth+1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// foldKey makes keys equal that the standard decoder takes for one field. By
// way of the upper case, because 'ſ' is lower case already and means 's' there.
func foldKey(key json.Token) string {
	s, _ := key.(string)
	return strings.ToLower(strings.ToUpper(s))
}
