package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
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
		return &usageError{"want -program, -out, at least 2 processes and 2 epochs, and the program's command line behind --"}
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
	rows := map[string][]float64{}
	for _, text := range bytes.Split(bytes.TrimSpace(said), []byte("\n")) {
		var e epoch
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		l, err := compare.Summarize(e.Batches)
		if err != nil {
			return fmt.Errorf("%s, epoch %d: %w", e.Kernel, e.Epoch, err)
		}
		rows[e.Kernel] = append(rows[e.Kernel], math.Log(l.Typical))
	}
	for kernel, row := range rows {
		if len(row) != epochs {
			return fmt.Errorf("%s has %d epochs, want %d", kernel, len(row), epochs)
		}
		groups[kernel] = append(groups[kernel], row)
	}
	return nil
}

// An analysis is the one-way analysis of variance with random effects over
// processes, in logarithms of typical. All groups have one size.
type analysis struct {
	fresh   float64 // standard deviation of the first epochs: that of fresh processes
	within  float64 // between epochs of one process
	between float64 // between processes, beyond what their epochs explain
	f, p    float64
}

func analyse(rows [][]float64) analysis {
	n, k := float64(len(rows[0])), float64(len(rows))
	var means, first []float64
	within := 0.0
	for _, row := range rows {
		m, sd := moments(row)
		means, first = append(means, m), append(first, row[0])
		within += sd * sd / k
	}
	_, sd := moments(means)
	a := analysis{within: math.Sqrt(within), f: n * sd * sd / within}
	a.between = math.Sqrt(math.Max(0, sd*sd-within/n))
	_, a.fresh = moments(first)
	a.p = distuv.F{D1: k - 1, D2: k * (n - 1)}.Survival(a.f)
	return a
}

// verdict says in words what an analysis allows.
func (a analysis) verdict() string {
	switch {
	case math.IsNaN(a.f) || math.IsInf(a.f, 0):
		return "nothing varies: no verdict"
	case a.p < 0.01:
		return "NOT equivalent: processes differ by more than their epochs explain"
	case a.p < 0.05:
		return "doubtful: measure more processes"
	}
	return "no difference seen: processes add nothing that epochs lack"
}

func writeEpochs(w io.Writer, renew string, groups map[string][][]float64) error {
	var names []string
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "renewed\tkernel\tprocesses\tepochs\tsd of fresh processes\tsd between epochs\tsd added by processes\tF\tp\tverdict")
	for _, name := range names {
		rows := groups[name]
		a := analyse(rows)
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%.3f %%\t%.3f %%\t%.3f %%\t%.2f\t%.2g\t%s\n", renew, name, len(rows), len(rows[0]),
			100*a.fresh, 100*a.within, 100*a.between, a.f, a.p, a.verdict())
	}
	return tw.Flush()
}
