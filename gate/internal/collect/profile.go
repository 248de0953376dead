package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/ncu"
)

// profileLimit ends a profiler that does not end: it replays the kernel once
// for every group of counters.
const profileLimit = 5 * time.Minute

// Profile runs one call of one unit under Nsight Compute. It is never mixed
// with timing.
func (c *Collector) Profile(ctx context.Context, u Unit) (*evidence.Record, error) {
	if c.NCU == "" {
		return c.failed(evidence.Profile, u, &evidence.Failure{Kind: evidence.Tool, Message: c.NCUWhy}), nil
	}
	c.say("profiling %s on %s", u.Kernel, u.Case.Name)
	text, s, e, err := c.runNCU(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("profiling %s: %w", u.Kernel, err)
	}
	r, f := c.profileRecord(u, text, s, e)
	if f != nil {
		r = c.failed(evidence.Profile, u, f)
		if unsettles(f) {
			return r, c.probe(ctx)
		}
		return r, nil
	}
	return r, c.Keep(r, map[string][]byte{"ncu.csv": text})
}

// runNCU profiles one call. A counter that this ncu does not know on this chip
// fails the whole run, so it is asked again without; the figures made from the
// counter are then missing by name.
func (c *Collector) runNCU(ctx context.Context, u Unit) (text []byte, s *stream, e *ending, err error) {
	counters, _ := ncu.Counters(c.Device.ComputeCapability, c.Metrics...)
	for {
		text, s, e, err = c.askNCU(ctx, u, counters)
		if err != nil {
			return nil, nil, nil, err
		}
		known := without(counters, unknownCounters(text))
		if len(known) == len(counters) || len(known) == 0 {
			return text, s, e, nil
		}
		counters = known
	}
}

var unknownCounter = regexp.MustCompile(`Failed to find metric (?:regex:\^)?([A-Za-z0-9_.]+)`)

// unknownCounters are the names that ncu says it does not know.
func unknownCounters(text []byte) map[string]bool {
	names := map[string]bool{}
	for _, m := range unknownCounter.FindAllSubmatch(text, -1) {
		names[strings.TrimRight(string(m[1]), ".")] = true
	}
	return names
}

func without(counters []string, unknown map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(counters), func(c string) bool {
		base, _, _ := strings.Cut(c, ".")
		return unknown[c] || unknown[base]
	})
}

func (c *Collector) askNCU(ctx context.Context, u Unit, counters []string) (text []byte, s *stream, e *ending, err error) {
	op, err := c.Op(u.Op)
	if err != nil {
		return nil, nil, nil, err
	}
	dir, err := os.MkdirTemp("", "gate-ncu-")
	if err != nil {
		return nil, nil, nil, err
	}
	defer os.RemoveAll(dir)
	log := filepath.Join(dir, "ncu.csv")
	args := []string{"--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
		"--cache-control", "none", "--target-processes", "all", "--profile-from-start", "off",
		"--log-file", log, "--metrics", strings.Join(counters, ","), c.Program}
	args = append(args, harnessArgs("profile", op, []Unit{u})...)
	e, err = c.child(c.NCU, args, dir, profileLimit, 0).run(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if info, err := os.Stat(log); err == nil && info.Size() > 32<<20 {
		return nil, nil, nil, errors.New("ncu wrote more than 32 MiB for one call")
	}
	text, _ = os.ReadFile(log) // no file reads as no table
	if s, err = parseStream(onlyJSON(e.stdout)); err != nil {
		e.garbled = err.Error()
	}
	return text, s, e, nil
}

// onlyJSON drops ncu's own lines, which share standard output with the
// harness's.
func onlyJSON(stdout []byte) []byte {
	var kept []string
	for _, line := range strings.SplitAfter(string(stdout), "\n") {
		if strings.HasPrefix(line, "{") {
			kept = append(kept, line)
		}
	}
	return []byte(strings.Join(kept, ""))
}

func (c *Collector) profileRecord(u Unit, text []byte, s *stream, e *ending) (*evidence.Record, *evidence.Failure) {
	report, err := ncu.Read(strings.NewReader(string(text)), "ncu.csv")
	if errors.Is(err, ncu.ErrPermission) || strings.Contains(e.stderr+string(e.stdout)+string(text), "ERR_NVGPUCTRPERM") {
		return nil, &evidence.Failure{Kind: evidence.Permission,
			Message: "the user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)",
			Hint:    "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"}
	}
	if e.timedOut != "" {
		return nil, &evidence.Failure{Kind: evidence.Tool, Message: "ncu was killed: " + e.timedOut}
	}
	if len(s.errors) > 0 {
		return nil, s.errors[0].fault()
	}
	if err != nil {
		return nil, &evidence.Failure{Kind: evidence.Tool, Message: fmt.Sprintf("ncu gave no figures: %v", err)}
	}
	if !s.ended || e.code != 0 || e.garbled != "" {
		return nil, &evidence.Failure{Kind: evidence.Tool, Message: fmt.Sprintf("ncu ended with status %d: %s", e.code, lastLine(e.stderr+e.garbled))}
	}
	r := c.record(evidence.Profile, u)
	r.Provenance.Profiler, r.Provenance.Protocol = c.Profiler, s.config.Protocol
	if f := c.translate(r, report.Launches); f != nil {
		return nil, f
	}
	return r, nil
}

// translate takes gate's metrics out of the launches of one call.
func (c *Collector) translate(r *evidence.Record, launches []*ncu.Launch) *evidence.Failure {
	if len(launches) == 0 {
		return &evidence.Failure{Kind: evidence.Wrong, Message: "the profiled call launched no kernel"}
	}
	cc := c.Device.ComputeCapability
	r.Metrics = evidence.Metrics{}
	for _, name := range c.Metrics {
		v, err := ncu.Aggregate(cc, launches, name)
		if err != nil {
			return &evidence.Failure{Kind: evidence.Tool, Message: err.Error()}
		}
		r.Metrics[name] = fromNCU(v, name)
	}
	for _, l := range launches {
		out := evidence.Launch{Kernel: l.Kernel, Block: l.Block, Grid: l.Grid, Metrics: evidence.Metrics{}}
		for _, name := range c.Metrics {
			v, err := ncu.Derive(cc, l, name)
			if err != nil {
				return &evidence.Failure{Kind: evidence.Tool, Message: err.Error()}
			}
			if v.Kind == ncu.Number && len(launches) > 1 {
				out.Metrics[name] = fromNCU(v, name)
			}
		}
		r.Launches = append(r.Launches, out)
	}
	return nil
}

func fromNCU(v ncu.Value, name string) evidence.Value {
	if v.Kind == ncu.Number {
		return evidence.Of(v.Number, v.Unit)
	}
	if v.Reason == "" {
		return evidence.Absent(name+" is not a number", v.Unit)
	}
	return evidence.Absent(v.Reason, v.Unit)
}
