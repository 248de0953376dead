package collect

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/ncu"
)

// profileLimit ends a profiler that does not end: it replays the kernel once
// for every group of counters.
const profileLimit = 5 * time.Minute

// profileUnit runs one call of one unit under Nsight Compute. It is never mixed
// with timing.
func (c *Bench) profileUnit(ctx context.Context, u unit) (*evidence.Record, error) {
	if c.ncu == "" {
		return c.failed(evidence.Profile, u, &evidence.Failure{Kind: evidence.Tool, Message: c.ncuWhy}), nil
	}
	c.say("profiling %s on %s", u.kernel, u.on.Name)
	text, s, end, err := c.runNCU(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("profiling %s: %w", u.kernel, err)
	}
	r, f := c.profileRecord(u, text, s, end)
	if f != nil {
		r = c.failed(evidence.Profile, u, f)
		if unsettles(f) {
			return r, c.probe(ctx)
		}
		return r, nil
	}
	return r, c.keep(r, "", map[string][]byte{"ncu.csv": text})
}

// runNCU profiles one call. A counter that this ncu does not know on this chip
// fails the whole run, so it is asked again without; the figures made from the
// counter are then missing by name.
func (c *Bench) runNCU(ctx context.Context, u unit) (text []byte, s *stream, r command.Result, err error) {
	counters, _ := ncu.Counters(c.device.ComputeCapability, c.metrics...)
	for {
		text, s, r, err = c.askNCU(ctx, u, counters)
		known := without(counters, unknownCounters(text))
		if err != nil || len(known) == len(counters) || len(known) == 0 {
			return text, s, r, err
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

func (c *Bench) askNCU(ctx context.Context, u unit, counters []string) (text []byte, s *stream, r command.Result, err error) {
	return c.watch(ctx, watcher{c.ncu, profileLimit, []string{"--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
		"--cache-control", "none", "--target-processes", "all", "--profile-from-start", "off", "--metrics", strings.Join(counters, ","), "--log-file"}}, u)
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

func (c *Bench) profileRecord(u unit, text []byte, s *stream, end command.Result) (*evidence.Record, *evidence.Failure) {
	report, err := ncu.Read(strings.NewReader(string(text)), "ncu.csv")
	if errors.Is(err, ncu.ErrPermission) || strings.Contains(end.Stderr+string(end.Stdout)+string(text), "ERR_NVGPUCTRPERM") {
		return nil, &evidence.Failure{Kind: evidence.Permission,
			Message: "the user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)",
			Hint:    "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"}
	}
	if end.Stopped != "" {
		return nil, &evidence.Failure{Kind: evidence.Tool, Message: ending("ncu", end)}
	}
	if len(s.errors) > 0 {
		return nil, s.errors[0].fault()
	}
	if err != nil {
		return nil, &evidence.Failure{Kind: evidence.Tool, Message: fmt.Sprintf("ncu gave no figures: %v (%s)", err, ending("ncu", end))}
	}
	if !s.ended || end.Err() != nil {
		why := ending("ncu", end)
		if s.garbled != nil {
			why += "; " + s.garbled.Error()
		}
		return nil, &evidence.Failure{Kind: evidence.Tool, Message: why}
	}
	r := c.record(evidence.Profile, u)
	r.Provenance.Profiler, r.Provenance.Protocol = c.profiler, s.config.Protocol
	if f := c.translate(r, report.Launches); f != nil {
		return nil, f
	}
	return r, nil
}

// translate takes gate's metrics out of the launches of one call.
func (c *Bench) translate(r *evidence.Record, launches []*ncu.Launch) *evidence.Failure {
	if len(launches) == 0 {
		return &evidence.Failure{Kind: evidence.Wrong, Message: "the profiled call launched no kernel"}
	}
	var err error
	if r.Metrics, r.Launches, err = profileFigures(c.device.ComputeCapability, c.metrics, launches); err != nil {
		return &evidence.Failure{Kind: evidence.Tool, Message: err.Error()}
	}
	return nil
}

// profileFigures are the figures of a call, and those of each of its launches
// where there are several.
func profileFigures(cc string, names []string, launches []*ncu.Launch) (evidence.Metrics, []evidence.Launch, error) {
	all := evidence.Metrics{}
	for _, name := range names {
		v, err := ncu.Aggregate(cc, launches, name)
		if err != nil {
			return nil, nil, err
		}
		all[name] = fromNCU(v, name)
	}
	var each []evidence.Launch
	for _, l := range launches {
		out := evidence.Launch{Kernel: l.Kernel, Block: l.Block, Grid: l.Grid, Metrics: evidence.Metrics{}}
		for _, name := range names {
			v, err := ncu.Derive(cc, l, name)
			if err != nil {
				return nil, nil, err
			}
			if v.Kind == ncu.Number && len(launches) > 1 {
				out.Metrics[name] = fromNCU(v, name)
			}
		}
		each = append(each, out)
	}
	return all, each, nil
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
