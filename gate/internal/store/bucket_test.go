package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "gocloud.dev/blob/s3blob"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
)

const (
	s3User   = "writer"
	s3Secret = "not-a-secret-of-anybody"
)

// gateway starts a real S3 server over a folder and returns the URL of a bucket
// of it, and the folder in which the bucket's objects lie.
func gateway(t *testing.T) (url, objects string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds an S3 server")
	}
	program := filepath.Join(t.TempDir(), "versitygw")
	build := exec.Command("go", "build", "-modfile=.ci/tools/go.mod", "-o", program, "github.com/versity/versitygw/cmd/versitygw")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the S3 server: %v\n%s", err, out)
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "evidence"), 0o755); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	var said bytes.Buffer
	server := exec.Command(program, "--port", address, "--access", s3User, "--secret", s3Secret, "--region", "us-east-1", "posix", "--sidecar", t.TempDir(), root)
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
		if t.Failed() {
			t.Logf("%.2000s", said.String())
		}
	})
	for range 600 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", s3User)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3Secret)
	return "s3://evidence/team/gate?region=us-east-1&use_path_style=true&endpoint=http://" + address, filepath.Join(root, "evidence", "team", "gate")
}

// bucketAt opens a bucket with a copy of its own, as another machine does.
func bucketAt(t *testing.T, url string) *Store {
	t.Helper()
	s, err := At(url, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fetch(t *testing.T, s *Store) {
	t.Helper()
	if notes, err := s.Fetch(t.Context()); err != nil || len(notes) > 0 {
		t.Fatalf("%q, %v", notes, err)
	}
}

func send(t *testing.T, s *Store, want int) {
	t.Helper()
	if n, err := s.Send(t.Context()); err != nil || n != want {
		t.Fatalf("%d records sent, want %d: %v", n, want, err)
	}
}

// TestObjectStore runs against a real server: what one machine records another
// one reads, the better record of a key counts, and damage is refused.
func TestObjectStore(t *testing.T) {
	url, objects := gateway(t)
	t.Run("round trip", func(t *testing.T) { roundTrip(t, url) })
	t.Run("many writers", func(t *testing.T) { manyWriters(t, url) })
	t.Run("killed writers", func(t *testing.T) { killedSenders(t, url) })
	t.Run("damage", func(t *testing.T) { damagedObjects(t, url, objects) })
	t.Run("no answer", func(t *testing.T) {
		t.Setenv("AWS_SECRET_ACCESS_KEY", "another")
		if _, err := bucketAt(t, url).Fetch(t.Context()); err == nil {
			t.Error("a store that does not let anybody in is not empty")
		}
	})
}

func roundTrip(t *testing.T, url string) {
	one, two := bucketAt(t, url), bucketAt(t, url)
	fetch(t, one)
	put(t, one, dated(evidence.Profile, address(nil), "2026-11-20T10:00:00Z"), map[string][]byte{"run.log": []byte("old")})
	send(t, one, 1)
	send(t, one, 0)
	fetch(t, two)
	put(t, two, dated(evidence.Profile, address(nil), "2026-11-20T12:00:00Z"), map[string][]byte{"run.log": []byte("new")})
	send(t, two, 1)
	// An older record that arrives later is kept, and does not replace the newer.
	put(t, one, dated(evidence.Profile, address(nil), "2026-11-20T11:00:00Z"), map[string][]byte{"run.log": []byte("between")})
	send(t, one, 1)
	for _, s := range []*Store{one, two, bucketAt(t, url)} {
		fetch(t, s)
		r, err := s.Get(key(evidence.Profile, address(nil), nil))
		if err != nil || r.Provenance.Recorded != "2026-11-20T12:00:00Z" || unpack(t, s, r) != "new" {
			t.Fatalf("%v, %v", r, err)
		}
	}
	if _, err := two.Prune(t.Context(), nil, false); err != nil {
		t.Fatal(err)
	}
	last := bucketAt(t, url)
	fetch(t, last)
	if records, err := last.Records(); err != nil || len(records) != 0 {
		t.Errorf("%d records are left, %v", len(records), err)
	}
}

// manyWriters: what several machines record at once is there afterwards, under
// keys of their own and under one that they share.
func manyWriters(t *testing.T, url string) {
	const writers, each = 8, 6
	var wg sync.WaitGroup
	for w := range writers {
		s := bucketAt(t, url)
		wg.Go(func() {
			for n := range each {
				own := address(func(a *evidence.Address) { a.Case = fmt.Sprintf("w%d-%d", w, n) })
				shared := record(evidence.Sessions, address(nil), nil)
				at := time.Date(2026, 11, 1+n, w, 0, 0, 0, time.UTC).Format(time.RFC3339)
				shared.Provenance.Recorded = at
				shared.Sessions = []evidence.Session{{Recorded: at, Card: fmt.Sprint(w), Processes: []evidence.SessionProcess{{CacheState: evidence.Warm, Typical: 1, Mean: 1}}}}
				joined := func(old *evidence.Record) (*evidence.Record, map[string][]byte, error) {
					shared.Schema = evidence.Schema
					if old != nil {
						return joinSessions(old, shared), nil, nil
					}
					return shared, nil, nil
				}
				err := errors.Join(s.Put(dated(evidence.Profile, own, at), map[string][]byte{"run.log": []byte(at)}), s.write(shared.Key(), joined))
				if err == nil {
					_, err = s.Send(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s := bucketAt(t, url)
	fetch(t, s)
	for w := range writers {
		for n := range each {
			own := address(func(a *evidence.Address) { a.Case = fmt.Sprintf("w%d-%d", w, n) })
			if _, err := s.Get(key(evidence.Profile, own, nil)); err != nil {
				t.Errorf("writer %d, record %d: %v", w, n, err)
			}
		}
	}
	history, err := s.Get(key(evidence.Sessions, address(nil), nil))
	if err != nil || len(history.Sessions) != writers*each {
		t.Errorf("%v, %v: want %d sessions", history, err, writers*each)
	}
}

// sendForEver writes records into an object store, until it is killed.
func sendForEver(url, copy string) {
	s, err := At(url, copy)
	for err == nil {
		a := address(func(a *evidence.Address) { a.Case = fmt.Sprint("k", rand.IntN(1000)) })
		now := time.Now().UTC()
		if err = s.Put(dated(evidence.Profile, a, now.Format(time.RFC3339)), map[string][]byte{"run.log": []byte(now.String())}); err == nil {
			_, err = s.Send(context.Background())
		}
		if err == nil {
			fmt.Println("wrote", a.Case)
		}
	}
	fmt.Println("error", err)
	os.Exit(1)
}

// killedSenders: what a process said it had sent is there, and no kill leaves a
// record that cannot be read.
func killedSenders(t *testing.T, url string) {
	sent := map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	const kills = 24
	for range 4 {
		wg.Go(func() {
			for range kills / 4 {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), writerStore+"="+url, writerCopy+"="+t.TempDir())
				var out bytes.Buffer
				cmd.Stdout = &out
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Duration(200+rand.IntN(400)) * time.Millisecond)
				cmd.Process.Kill()
				cmd.Wait()
				mu.Lock()
				for line := range strings.Lines(out.String()) {
					if kase, ok := strings.CutPrefix(line, "wrote "); ok && strings.HasSuffix(kase, "\n") {
						sent[strings.TrimSpace(kase)] = true
					} else if strings.HasPrefix(line, "error") {
						t.Error(line)
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	s := bucketAt(t, url)
	fetch(t, s)
	for kase := range sent {
		if _, err := s.Get(key(evidence.Profile, address(func(a *evidence.Address) { a.Case = kase }), nil)); err != nil {
			t.Errorf("%s: %v", kase, err)
		}
	}
	if len(sent) < kills/4 {
		t.Errorf("only %d records were sent", len(sent))
	}
	t.Logf("%d kills, %d records", kills, len(sent))
}

// damagedObjects: an object whose content is not what its name says, or whose
// raw input is gone, is refused and named.
func damagedObjects(t *testing.T, url, objects string) {
	for i, damage := range []func(record, raw string) error{
		func(record, _ string) error { return os.Truncate(record, 10) },
		func(record, _ string) error {
			data, err := os.ReadFile(record)
			return errors.Join(err, os.WriteFile(record, bytes.Replace(data, []byte("sum/one"), []byte("sum/two"), 1), 0o644))
		},
		func(_, raw string) error { return os.Remove(raw) },
		func(_, raw string) error { return os.WriteFile(raw, []byte("x"), 0o644) },
	} {
		a := address(func(a *evidence.Address) { a.Case = fmt.Sprint("damaged", i) })
		s := bucketAt(t, url)
		put(t, s, dated(evidence.Profile, a, "2026-11-20T10:00:00Z"), map[string][]byte{"run.log": []byte(fmt.Sprint(i))})
		send(t, s, 1)
		folder := filepath.Join(objects, machine.Key(), a.Identity.Short(), "sum-"+a.Case+"-"+a.Harness[:8])
		records, _ := filepath.Glob(filepath.Join(folder, "*.json"))
		raws, _ := filepath.Glob(filepath.Join(folder, "*.gz"))
		if len(records) != 1 || len(raws) != 1 {
			t.Fatalf("%q, %q", records, raws)
		}
		if err := damage(records[0], raws[0]); err != nil {
			t.Fatal(err)
		}
		reader := bucketAt(t, url)
		notes, err := reader.Fetch(t.Context())
		if err != nil || len(notes) != i+1 {
			t.Errorf("damage %d: %q, %v", i, notes, err)
		}
		if _, err := reader.Get(key(evidence.Profile, a, nil)); !errors.Is(err, errNotFound) {
			t.Errorf("damage %d: %v", i, err)
		}
	}
}

func TestPlacesOfStores(t *testing.T) {
	cache := t.TempDir()
	for place, name := range map[string]string{"kernels/evidence": "kernels/evidence", "file:///a/b": "/a/b",
		"s3://bucket/x?region=eu-west-1": "s3://bucket/x?region=eu-west-1"} {
		s, err := At(place, cache)
		if err != nil || s.Name() != name {
			t.Errorf("%s: %v, %v", place, s, err)
		}
	}
	for _, place := range []string{"file://a/b", "ftp://a/b", "gs://bucket", "s3://%zz"} {
		_, err := At(place, cache)
		if status, _ := exit.Of(err); err == nil || status != exit.Usage {
			t.Errorf("%s: %v", place, err)
		}
	}
}
