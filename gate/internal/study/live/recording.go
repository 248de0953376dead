package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// A recording is what one run of the program left, as far as a table shows it.
type recording struct {
	checks []line
	truths map[int]truth
	epochs map[string]map[string][][]float64 // by what is renewed and kernel
	noise  []noise
}

// A noise is one row of gate calibrate's JSON, as far as a table shows it.
type noise struct {
	Kernel, Case, Regime string
	Limits               struct{ Detect float64 }
	Figures              struct {
		Process float64  `json:"sigma_launch"`
		Batch   float64  `json:"sigma_batch"`
		Between float64  `json:"between_share"`
		Lag1    float64  `json:"autocorrelation"`
		MDE90   *float64 `json:"mde90"`
		Pairs   int      `json:"need_pairs"`
	}
}

// maxLine bounds a line of a recording.
const maxLine = 16 << 20

// readRecording reads JSON lines, gzipped where the name says so.
func readRecording(path string) (recording, error) {
	out := recording{truths: map[int]truth{}, epochs: map[string]map[string][][]float64{}}
	f, err := os.Open(path)
	if err != nil {
		return out, err
	}
	defer f.Close()
	var from io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if from, err = gzip.NewReader(f); err != nil {
			return out, err
		}
	}
	lines, n := bufio.NewScanner(from), 0
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		n++
		if err := out.take(lines.Bytes()); err != nil {
			return out, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return out, err
	}
	if n == 0 {
		return out, errors.New("no line")
	}
	return out, out.complete()
}

// take adds one line, whose kind its fields tell.
func (r *recording) take(text []byte) error {
	var kind struct{ Phase, Renew, Schema string }
	if err := json.Unmarshal(text, &kind); err != nil {
		return err
	}
	switch {
	case kind.Renew != "":
		return r.takeEpoch(text)
	case kind.Phase == "aa" || kind.Phase == "planted" || kind.Phase == "mix":
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return err
		}
		if l.Kernels == 0 || l.Kernels != len(l.Outcomes) || l.Red+l.Pass+l.Inconclusive != l.Kernels {
			return fmt.Errorf("%d kernels, %d outcomes", l.Kernels, len(l.Outcomes))
		}
		r.checks = append(r.checks, l)
		return nil
	case kind.Schema == "gate/calibration/v1":
		var c struct{ Kernels []noise }
		err := json.Unmarshal(text, &c)
		r.noise = append(r.noise, c.Kernels...)
		return err
	case kind.Phase == "trial" || kind.Phase == "truth":
		var t truth
		if err := json.Unmarshal(text, &t); err != nil {
			return err
		}
		if kind.Phase == "truth" {
			r.truths[t.Extra] = t
		}
		return nil
	}
	return fmt.Errorf("a line of phase %q", kind.Phase)
}

func (r *recording) takeEpoch(text []byte) error {
	var e epoch
	if err := json.Unmarshal(text, &e); err != nil {
		return err
	}
	if r.epochs[e.Renew] == nil {
		r.epochs[e.Renew] = map[string][][]float64{}
	}
	return takeEpoch(e, r.epochs[e.Renew])
}

// complete refuses processes of different lengths, and planted work whose cost
// was not measured.
func (r *recording) complete() error {
	for renew, kernels := range r.epochs {
		for name, rows := range kernels {
			for _, row := range rows {
				if len(rows) < 2 || len(row) < 2 || len(row) != len(rows[0]) {
					return fmt.Errorf("%s, %s: processes of %d and %d epochs", renew, name, len(rows[0]), len(row))
				}
			}
		}
	}
	for _, l := range r.checks {
		for _, o := range l.Outcomes {
			if _, ok := r.truths[o.Extra]; l.Phase == "planted" && !ok {
				return fmt.Errorf("what extra work of %d costs is not recorded", o.Extra)
			}
		}
	}
	return nil
}
