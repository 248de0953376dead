package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/store"
)

// timed makes the victim's kernels noisy, so that an experiment takes many
// rounds, and asks for plain times as well.
func (v victim) timed() (log string) {
	v.edit("kernels/toy/scale/scale.cu", "FAKE latency=10000", "FAKE latency=10000 noise=0.08")
	v.edit("policies.yaml", "rules:\n", "rules:\n  - {id: absolute, metric: latency.typical, limit: 1ms}\n")
	v.run("git", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-a", "-m", "noise")
	return filepath.Join(v.TempDir(), "log")
}

func (v victim) edit(file, old, new string) {
	v.Helper()
	path := filepath.Join(v.dir, file)
	text, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte(old)) {
		v.Fatalf("%s holds no %q: %v", file, old, err)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(new), 1), 0o644); err != nil {
		v.Fatal(err)
	}
}

// records are what lies in a folder of the cache, but for what was there.
func (v victim) records(folder string, but []*evidence.Record) []*evidence.Record {
	v.Helper()
	all, err := store.Open(filepath.Join(v.cache, folder)).Records()
	if err != nil {
		v.Fatal(err)
	}
	return slices.DeleteFunc(all, func(r *evidence.Record) bool {
		return r.Tier != evidence.Latency || slices.ContainsFunc(but, func(old *evidence.Record) bool { return old.Key() == r.Key() })
	})
}

// samplesOf are all that a record holds, in the order in which they were taken.
func samplesOf(r *evidence.Record) []evidence.Sample {
	if r.Experiment == nil {
		return r.Samples
	}
	var all []evidence.Sample
	for _, b := range r.Experiment.Rounds {
		all = append(append(all, b.Base...), b.Head...)
	}
	return all
}

// TestKillsWhileTiming ends gate at random moments, with and without a warning,
// until its experiments are finished. What was measured once stays, nothing is
// counted twice, and the looks are those of the plan.
func TestKillsWhileTiming(t *testing.T) {
	takesLong(t)
	v := newVictim(t)
	log := v.timed()
	v.run("gate", "check")
	v.env = append(v.env, "FAKE_LOG="+log, "GATE_CONFINE=off") // the log is not among what a confined program may write
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	continued, signals := 0, 0
	for i := range *kills/10 + 1 {
		old := v.records("evidence", nil)
		v.edit("kernels/toy/scale/scale.cu", fmt.Sprintf("%d * in", i+2), fmt.Sprintf("%d * in", i+3))
		os.Remove(log)
		ends := 0
		seen := map[evidence.Key][]evidence.Sample{} // what was there at the last end
		for ; v.end(log, random, ends); ends++ {
			continued += v.grown(seen, v.records("unfinished", nil))
		}
		signals += ends
		fresh := v.records("evidence", old)
		if len(fresh) != 2 {
			t.Fatalf("%d records came of it, want times alone and an experiment", len(fresh))
		}
		v.grown(seen, fresh)
		for _, r := range fresh {
			v.whole(r)
		}
		if left := v.records("unfinished", nil); len(left) != 0 {
			t.Errorf("%d unfinished records are left", len(left))
		}
		n, useful := timings(log), 1+len(samplesOf(fresh[0]))+len(samplesOf(fresh[1]))
		if lost := ends * (1 + 8); n > useful+lost { // of each run, a pilot and less than a round
			t.Errorf("%d processes were timed in %d runs, want %d at most", n, ends+1, useful+lost)
		}
	}
	t.Logf("%d ends, after %d of which a run went on", signals, continued)
	if continued == 0 {
		t.Error("no run went on with what another one had measured")
	}
}

// end runs gate check and ends it a moment after some process has begun to time;
// false when it came to its end before. After many ends it is left alone.
func (v victim) end(log string, random *rand.Rand, before int) bool {
	v.Helper()
	cmd, out := v.command("gate", "check")
	if err := cmd.Start(); err != nil {
		v.Fatal(err)
	}
	if before < 8 {
		over := make(chan struct{})
		go func() {
			unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			close(over)
		}()
		for until := timings(log) + 1 + random.IntN(40); timings(log) < until; {
			select {
			case <-over:
				until = 0
			case <-time.After(5 * time.Millisecond):
			}
		}
		time.Sleep(time.Duration(random.Int64N(int64(40 * time.Millisecond))))
		cmd.Process.Signal([]os.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM}[random.IntN(3)])
	}
	err := cmd.Wait()
	switch code := cmd.ProcessState.ExitCode(); {
	case code == -1, code == 130, code == 143:
		return true
	case code != 0 && code != 1 && code != 4:
		v.Fatalf("%v\n%s", err, out)
	}
	return false
}

// timings is how many processes have begun to time.
func timings(log string) int {
	said, _ := os.ReadFile(log)
	return strings.Count(string(said), "harness time")
}

// grown holds what is there to what was there before: no sample is lost or
// another. It says whether anything was gone on with.
func (v victim) grown(seen map[evidence.Key][]evidence.Sample, now []*evidence.Record) (continued int) {
	v.Helper()
	for _, r := range now {
		all, was := samplesOf(r), seen[r.Key()]
		if len(all) < len(was) || len(was) > 0 && !reflect.DeepEqual(all[:len(was)], was) {
			v.Errorf("of %d samples %d are left, or others", len(was), len(all))
		}
		if len(was) > 0 && len(all) > len(was) {
			continued = 1
		}
		seen[r.Key()] = all
	}
	return continued
}

// whole holds a record to its plan.
func (v victim) whole(r *evidence.Record) {
	v.Helper()
	all := samplesOf(r)
	for i, s := range all {
		if slices.ContainsFunc(all[:i], func(o evidence.Sample) bool { return slices.Equal(o.BatchesNS, s.BatchesNS) }) {
			v.Errorf("sample %d was counted before", i)
		}
	}
	if r.Experiment == nil {
		if len(all) != 10 {
			v.Errorf("%d samples, want 10", len(all))
		}
		return
	}
	limits := v.limits(r)
	one := compare.Series{Limits: limits, Summaries: []compare.Summary{compare.Typical}}
	for n, b := range r.Experiment.Rounds {
		round, err := compare.RoundOf(b, evidence.Warm)
		if err != nil || b.Number != n {
			v.Fatalf("round %d is numbered %d: %v", n, b.Number, err)
		}
		one.Rounds = append(one.Rounds, round)
	}
	outcomes, err := compare.Decide([]compare.Series{one}, compare.SequentialPlan())
	if err != nil {
		v.Fatal(err)
	}
	looks := outcomes[0].Summaries[0].Looks
	for k, l := range looks {
		if want := compare.SequentialPlan().Looks[k]; l.Pairs != want {
			v.Errorf("look %d is after %d pairs, want %d", k, l.Pairs, want)
		}
	}
	if open, err := compare.Open([]compare.Series{one}, compare.SequentialPlan()); err != nil || len(looks) != len(one.Rounds) || open[0] {
		v.Errorf("%v: it ended after %d rounds, of which %d were looked at, and is undecided: %v", err, len(one.Rounds), len(looks), open)
	}
	one.Rounds = one.Rounds[:len(one.Rounds)-1]
	if open, err := compare.Open([]compare.Series{one}, compare.SequentialPlan()); err != nil || len(one.Rounds) > 0 && !open[0] {
		v.Errorf("%v: it was decided a round before its end", err)
	}
}

// limits are those of the policy's rule for the base's time in the pilot, as the
// product takes them: its floor is more than the tolerance of a base below 10 µs.
func (v victim) limits(r *evidence.Record) compare.Limits {
	v.Helper()
	profile, err := compare.Profile("standard")
	if err != nil {
		v.Fatal(err)
	}
	base, err := compare.BaseTime(r.Experiment.Pilot, evidence.Warm, compare.Typical)
	if err != nil {
		v.Fatal(err)
	}
	limits, err := compare.Bound{Limits: profile, FloorNS: 50}.At(base)
	if err != nil {
		v.Fatal(err)
	}
	return limits
}
