package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/ncu"
)

// profileLimit ends a profiler that does not end, for each case: it replays the
// kernel once for every group of counters.
const profileLimit = 5 * time.Minute

func init() {
	tiers[evidence.Profile] = tier{measure: func(c *Bench, ctx context.Context, s plan.Step, l *evidence.Ledger) error {
		return c.eachContender(ctx, s, l, c.profileUnits)
	}, audit: auditProfile, raw: []string{"ncu.csv"}, sections: []string{"launches"}}
}

// profileUnits runs one call of each unit under Nsight Compute. The units are cases
// of one kernel and share a process, since ncu takes far longer to start than to
// measure a call. Profiling is never mixed with timing.
func (c *Bench) profileUnits(ctx context.Context, units []unit) ([]*evidence.Record, error) {
	if c.ncu == "" {
		return c.allFailed(units, &evidence.Failure{Kind: evidence.Tool, Message: c.ncuWhy}), nil
	}
	var cases []string
	for _, u := range units {
		cases = append(cases, u.on.Name)
	}
	c.say("profiling %s on %s", units[0].kernel, strings.Join(cases, ", "))
	text, s, end, err := c.runNCU(ctx, units)
	if err != nil {
		return nil, fmt.Errorf("profiling %s: %w", units[0].kernel, err)
	}
	pages, f := profilePages(units, text, s, end)
	if f != nil {
		return c.profileAlone(ctx, units, f)
	}
	var records []*evidence.Record
	for i, u := range units {
		r, f := c.profileRecord(u, pages[i], s.config.Protocol)
		if f != nil {
			records = append(records, c.failed(evidence.Profile, u, f))
			continue
		}
		records = append(records, r)
		if err := c.keep(r, "", map[string][]byte{"ncu.csv": pages[i].text}); err != nil {
			return records, err
		}
	}
	return records, nil
}

// profileAlone gives each case a process of its own after one that they shared
// failed: which of them was to blame is not always told, and the others are not lost
// with it. A process that had one case has said all that there is.
func (c *Bench) profileAlone(ctx context.Context, units []unit, f *evidence.Failure) ([]*evidence.Record, error) {
	var gone error
	if unsettles(f) {
		gone = c.probe(ctx)
	}
	if gone != nil || len(units) == 1 || f.Kind == evidence.Permission {
		return c.allFailed(units, f), gone
	}
	var records []*evidence.Record
	for _, u := range units {
		one, err := c.profileUnits(ctx, []unit{u})
		records = append(records, one...)
		if err != nil {
			return records, err
		}
	}
	return records, nil
}

func (c *Bench) allFailed(units []unit, f *evidence.Failure) []*evidence.Record {
	var records []*evidence.Record
	for _, u := range units {
		records = append(records, c.failed(evidence.Profile, u, f))
	}
	return records
}

// runNCU profiles one call of each unit. A counter that this ncu does not know on this chip
// fails the whole run, so it is asked again without; the figures made from the
// counter are then missing by name.
func (c *Bench) runNCU(ctx context.Context, units []unit) (text []byte, s *stream, r command.Result, err error) {
	counters, _ := ncu.Counters(c.device.ComputeCapability, c.metrics...)
	for {
		text, s, r, err = c.askNCU(ctx, units, counters)
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

func (c *Bench) askNCU(ctx context.Context, units []unit, counters []string) (text []byte, s *stream, r command.Result, err error) {
	limit := time.Duration(len(units)) * profileLimit
	return c.watch(ctx, watcher{c.ncu, limit, []string{"--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
		"--cache-control", "none", "--target-processes", "all", "--profile-from-start", "off", "--metrics", strings.Join(counters, ","), "--log-file"}}, units)
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

// profilePages are the rows of each unit in what ncu wrote, or why there are none.
func profilePages(units []unit, text []byte, s *stream, end command.Result) ([]profilePage, *evidence.Failure) {
	report, err := ncu.Read(bytes.NewReader(text), "ncu.csv")
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
	pages, err := cutPages(text, report.Launches, units, s.profile)
	if err != nil {
		return nil, &evidence.Failure{Kind: evidence.Tool, Message: err.Error()}
	}
	return pages, nil
}

// profileRecord takes gate's metrics out of the launches of one call.
func (c *Bench) profileRecord(u unit, p profilePage, protocol string) (*evidence.Record, *evidence.Failure) {
	r := c.record(evidence.Profile, u)
	r.Provenance.Profiler, r.Provenance.Protocol = c.profiler, protocol
	var err error
	if r.Metrics, r.Launches, err = profileFigures(c.device.ComputeCapability, c.metrics, p.launches); err != nil {
		return nil, &evidence.Failure{Kind: evidence.Tool, Message: err.Error()}
	}
	return r, nil
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

func auditProfile(_ Auditor, r *evidence.Record, raw map[string][]byte) error {
	report, err := ncu.Read(bytes.NewReader(raw["ncu.csv"]), "ncu.csv")
	if err != nil {
		return fmt.Errorf("its raw input cannot be read: %w", err)
	}
	if r.Provenance.Profiler == "" || len(r.Metrics) == 0 {
		return errors.New("it does not say which profiler measured what")
	}
	metrics, launches, err := profileFigures(r.Provenance.Machine.CC, slices.Sorted(maps.Keys(r.Metrics)), report.Launches)
	if err != nil {
		return err
	}
	if err := sameFigures(r.Metrics, metrics); err != nil {
		return err
	}
	if !reflect.DeepEqual(r.Launches, launches) {
		return errors.New("its launches are not those of its raw input")
	}
	return nil
}
