package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kernelgate/gate/gate/internal/compare"
)

// An epoch is one line of the program.
type epoch struct {
	Process  int       `json:"process"`
	Renew    string    `json:"renew"`
	Epoch    int       `json:"epoch"`
	Kernel   string    `json:"kernel"`
	Calls    int       `json:"calls"`
	Buffers  string    `json:"buffers"`
	Module   string    `json:"module"`
	Unloaded bool      `json:"unloaded"`
	Batches  []float64 `json:"batches_ns"`
}

// runEpochs starts processes of several epochs each and compares the variance
// between processes with that between epochs.
func runEpochs(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("epochs", flag.ContinueOnError)
	f.SetOutput(stderr)
	program := f.String("program", "", "kernels/harness/testdata/epochs, built")
	processes := f.Int("processes", 12, "processes")
	epochs := f.Int("epochs", 8, "epochs in each")
	renew := f.String("renew", "modules", "buffers, modules or context")
	out := f.String("out", "", "file of JSON lines, appended to")
	if err := f.Parse(args); err != nil {
		return &usageError{err.Error()}
	}
	if *program == "" || *out == "" || *processes < 2 || *epochs < 2 || f.NArg() == 0 {
		return &usageError{"want -program, -out, at least 2 processes and 2 epochs, and the program's command line after --"}
	}
	file, err := os.OpenFile(*out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	groups := map[string][][]float64{} // by kernel: logarithms, a row each process
	for p := range *processes {
		argv := append([]string{*renew, strconv.Itoa(*epochs)}, f.Args()...)
		cmd := exec.CommandContext(ctx, *program, append(argv, "--seed", strconv.Itoa(1000+p))...)
		cmd.Stderr = stderr
		said, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("process %d: %w", p+1, err)
		}
		if _, err := file.Write(said); err != nil {
			return err
		}
		if err := takeProcess(said, *epochs, groups); err != nil {
			return fmt.Errorf("process %d: %w", p+1, err)
		}
	}
	return writeEpochs(stdout, *renew, groups)
}

// takeProcess adds one process's epochs to the groups.
func takeProcess(said []byte, epochs int, groups map[string][][]float64) error {
	before := map[string]int{}
	for kernel, rows := range groups {
		before[kernel] = len(rows)
	}
	for _, text := range bytes.Split(bytes.TrimSpace(said), []byte("\n")) {
		var e epoch
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		if err := takeEpoch(e, groups); err != nil {
			return err
		}
	}
	for kernel, rows := range groups {
		if len(rows) != before[kernel]+1 || len(rows[len(rows)-1]) != epochs {
			return fmt.Errorf("%s has not %d epochs", kernel, epochs)
		}
	}
	return nil
}

// takeEpoch adds one epoch to the last row of its kernel, or begins a row.
func takeEpoch(e epoch, groups map[string][][]float64) error {
	l, err := compare.Summarize(e.Batches)
	if err != nil {
		return fmt.Errorf("%s, epoch %d: %w", e.Kernel, e.Epoch, err)
	}
	rows := groups[e.Kernel]
	if e.Epoch == 0 {
		rows = append(rows, nil)
	}
	last := len(rows) - 1
	if last < 0 || e.Epoch != len(rows[last]) {
		return fmt.Errorf("%s, epoch %d: an epoch before it is missing", e.Kernel, e.Epoch)
	}
	rows[last] = append(rows[last], math.Log(l.Typical))
	groups[e.Kernel] = rows
	return nil
}

// An analysis is the one-way analysis of variance with random effects over
// processes, in logarithms of typical, the two-way one for the number of an epoch
// in its process, and a comparison of steps. All groups have one size.
type analysis struct {
	fresh    float64 // standard deviation of the first epochs: that of fresh processes
	within   float64 // between epochs of one process
	between  float64 // between processes, beyond what their epochs explain
	f, p     float64 // whether processes differ by more than their epochs
	later    float64 // mean of the other epochs against that of the first
	pNumber  float64 // whether an epoch's number matters
	borders  float64 // probability that a step into a process exceeds one inside
	pBorders float64
}

func analyse(rows [][]float64) analysis {
	n, k := float64(len(rows[0])), float64(len(rows))
	var means, first []float64
	within := 0.0
	numbers := make([]float64, len(rows[0])) // the mean of each epoch over all processes
	for _, row := range rows {
		m, sd := moments(row)
		means, first = append(means, m), append(first, row[0])
		within += sd * sd / k
		for i, x := range row {
			numbers[i] += x / k
		}
	}
	_, sd := moments(means)
	a := analysis{within: math.Sqrt(within), f: n * sd * sd / within}
	a.between = math.Sqrt(math.Max(0, sd*sd-within/n))
	_, a.fresh = moments(first)
	a.p = distuv.F{D1: k - 1, D2: k * (n - 1)}.Survival(a.f)
	a.pNumber = numberMatters(numbers, within, k)
	others, _ := moments(numbers[1:])
	a.later = others - numbers[0]
	a.borders, a.pBorders = steps(rows)
	return a
}

// numberMatters is the p value of the F test for the means of the first, second …
// epochs of k processes, whose variance inside processes is given.
func numberMatters(numbers []float64, within, k float64) float64 {
	n := float64(len(numbers))
	_, sd := moments(numbers)
	inside := k * (n - 1) * within // sum of squares, of which the numbers explain a part
	rest := (inside - k*(n-1)*sd*sd) / ((k - 1) * (n - 1))
	return distuv.F{D1: n - 1, D2: (k - 1) * (n - 1)}.Survival(k * sd * sd / rest)
}

// steps compares the steps from one process to the next with those from one
// epoch to the next. Unlike the analysis of variance it is not misled by a device
// that moves while all this runs. The p value is that of the Mann-Whitney test, by
// the normal approximation.
func steps(rows [][]float64) (larger, p float64) {
	var into, inside []float64
	for i, row := range rows {
		if i > 0 {
			before := rows[i-1]
			into = append(into, math.Abs(row[0]-before[len(before)-1]))
		}
		for j := range row[1:] {
			inside = append(inside, math.Abs(row[j+1]-row[j]))
		}
	}
	wins := 0.0
	for _, x := range into {
		for _, y := range inside {
			if x > y {
				wins++
			} else if x == y {
				wins += 0.5
			}
		}
	}
	pairs := float64(len(into) * len(inside))
	sd := math.Sqrt(pairs * float64(len(into)+len(inside)+1) / 12)
	return wins / pairs, distuv.UnitNormal.Survival((wins - pairs/2) / sd)
}

// verdict says in words what an analysis allows.
func (a analysis) verdict() string {
	switch {
	case math.IsNaN(a.f) || math.IsInf(a.f, 0):
		return "nothing varies: no verdict"
	case a.pNumber < 0.01:
		return "NOT equivalent: it matters which epoch of its process one is"
	case a.pBorders < 0.01:
		return "NOT equivalent: a new process moves the time more than a new epoch"
	case a.pNumber < 0.05 || a.pBorders < 0.05:
		return "doubtful: measure more processes"
	case a.p < 0.01:
		return "no difference seen; the device moved during the run"
	}
	return "no difference seen"
}

var epochColumns = []string{"renewed", "kernel", "processes × epochs", "sd of fresh processes", "sd between epochs", "sd added by processes",
	"F of processes", "later epochs", "steps into a process larger", "verdict"}

func epochCells(renew, name string, rows [][]float64) []string {
	a := analyse(rows)
	return []string{renew, name, fmt.Sprintf("%d × %d", len(rows), len(rows[0])), fmt.Sprintf("%.3f %%", 100*a.fresh),
		fmt.Sprintf("%.3f %%", 100*a.within), fmt.Sprintf("%.3f %%", 100*a.between), fmt.Sprintf("%.2f (p %s)", a.f, probability(a.p)),
		fmt.Sprintf("%+.3f %% (p %s)", 100*a.later, probability(a.pNumber)), fmt.Sprintf("%.0f %% (p %s)", 100*a.borders, probability(a.pBorders)), a.verdict()}
}

func probability(p float64) string {
	if p < 1e-4 {
		return "< 0.0001"
	}
	return fmt.Sprintf("%.2g", p)
}

func writeEpochs(w io.Writer, renew string, groups map[string][][]float64) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(epochColumns, "\t"))
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintln(tw, strings.Join(epochCells(renew, name, groups[name]), "\t"))
	}
	return tw.Flush()
}
