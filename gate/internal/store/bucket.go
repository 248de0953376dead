package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
)

// A bucket is a store of objects that several machines write into. An object is
// named by its content and written only where there is none of that name, so
// that no writer can take away what another one wrote: a record that answers
// more is one object more. A copy in the cache holds the best of each key.
type bucket struct {
	url  string
	dir  string // of the copy
	open func(context.Context) (*blob.Bucket, error)
}

// At opens a store by its place: a folder, or the URL of an object store.
func At(place, cache string) (*Store, error) {
	if !strings.Contains(place, "://") {
		return Open(place), nil
	}
	u, err := url.Parse(place)
	if err != nil {
		return nil, exit.Usagef("", "the store %q is not a URL: %v", place, err)
	}
	if u.Scheme == "file" {
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return nil, exit.Usagef("file:///path/from/the/root", "the store %q does not name a folder", place)
		}
		return Open(filepath.FromSlash(u.Path)), nil
	}
	if u.Scheme == "gs" && !blob.DefaultURLMux().ValidBucketScheme(u.Scheme) {
		return nil, exit.Usagef("build it with -tags gs", "this gate was built without the driver of gs:// stores")
	}
	if !blob.DefaultURLMux().ValidBucketScheme(u.Scheme) {
		return nil, exit.Usagef("known: "+strings.Join(schemes(), ", "), "this gate knows no store of the kind %s://", u.Scheme)
	}
	sum := sha256.Sum256([]byte(place))
	b := &bucket{url: place, dir: filepath.Join(cache, "stores", hex.EncodeToString(sum[:6]))}
	prefix := strings.Trim(u.Path, "/")
	u.Path = ""
	b.open = func(ctx context.Context) (*blob.Bucket, error) {
		opened, err := blob.OpenBucket(ctx, u.String())
		if err != nil || prefix == "" {
			return opened, err
		}
		return blob.PrefixedBucket(opened, prefix+"/"), nil
	}
	s := Open(filepath.Join(b.dir, "records"))
	s.bucket = b
	return s, nil
}

// schemes are those of folders and of the object stores that are built in.
func schemes() []string {
	return append([]string{"file"}, slices.DeleteFunc(blob.DefaultURLMux().BucketSchemes(), func(s string) bool { return strings.Contains(s, "+") })...)
}

// Name is what a reader knows the store by.
func (s *Store) Name() string {
	if s.bucket != nil {
		return s.bucket.url
	}
	return filepath.Clean(s.dir)
}

var (
	recordObject = regexp.MustCompile(`^([a-z0-9-]+-[0-9a-f]{8}/[0-9a-z-]+/[A-Za-z0-9_.-]+/[a-z-]+(?:-vs-[0-9a-z-]+)?)\.([0-9a-f]{64})\.json$`)
	rawObject    = regexp.MustCompile(`^[a-z0-9-]+-[0-9a-f]{8}/[0-9a-z-]+/[A-Za-z0-9_.-]+/[0-9a-f]{64}\.gz$`)
)

// recordKey names the object of a record by its place and content.
func recordKey(rel string, data []byte) string {
	sum := sha256.Sum256(data)
	return strings.TrimSuffix(filepath.ToSlash(rel), ".json") + "." + hex.EncodeToString(sum[:]) + ".json"
}

func rawKey(rel string, raw evidence.Raw) string {
	return path.Join(path.Dir(filepath.ToSlash(rel)), raw.SHA256+".gz")
}

// Fetch brings into the copy of an object store what others wrote meanwhile. A
// record that is refused is named, and is not evidence. A folder needs no copy.
func (s *Store) Fetch(ctx context.Context) (notes []string, err error) {
	if s.bucket == nil {
		return nil, nil
	}
	err = s.bucket.each(ctx, func(b *blob.Bucket, keys []string) error {
		seen := s.bucket.seen()
		for _, k := range keys {
			m := recordObject.FindStringSubmatch(k)
			if m == nil || seen[k] && s.has(m[1]) {
				continue
			}
			err := s.take(ctx, b, k)
			var refused *refusedError
			if errors.As(err, &refused) {
				notes = append(notes, fmt.Sprintf("a recorded piece of evidence is refused: %s: %v", k, refused.why))
				continue
			}
			if err != nil {
				return err
			}
			seen[k] = true
		}
		maps.DeleteFunc(seen, func(k string, _ bool) bool { return !slices.Contains(keys, k) })
		return s.bucket.remember(seen)
	})
	return notes, err
}

func (s *Store) has(stem string) bool {
	_, err := os.Lstat(filepath.Join(s.dir, filepath.FromSlash(stem)+".json"))
	return err == nil
}

// A refusedError is an object that is not what its name says.
type refusedError struct{ why error }

func (e *refusedError) Error() string { return e.why.Error() }

// take joins one record of the bucket, with its raw inputs, to the copy.
func (s *Store) take(ctx context.Context, b *blob.Bucket, key string) error {
	data, err := read(ctx, b, key, evidence.MaxRecord)
	if err != nil {
		return err
	}
	r, err := evidence.Decode(data)
	if err != nil {
		return &refusedError{err}
	}
	rel, err := place(r.Key())
	if err != nil {
		return &refusedError{err}
	}
	if recordKey(rel, data) != key {
		return &refusedError{errors.New("its content is not what its name says")}
	}
	if err := named(r); err != nil {
		return &refusedError{err}
	}
	packed := map[string][]byte{}
	for _, raw := range r.Raw {
		content, err := read(ctx, b, rawKey(rel, raw), maxRaw)
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != raw.SHA256 {
			return &refusedError{fmt.Errorf("its raw input %s has another digest than the record says", raw.Name)}
		}
		packed[raw.Name] = content
	}
	err = s.write(r.Key(), func(old *evidence.Record) (*evidence.Record, map[string][]byte, error) {
		if old == nil {
			return r, packed, nil
		}
		joined := join(old, r)
		if joined == old {
			return nil, nil, nil
		}
		return joined, packed, nil
	})
	if err != nil {
		return &refusedError{err}
	}
	return nil
}

func read(ctx context.Context, b *blob.Bucket, key string, most int64) ([]byte, error) {
	r, err := b.NewReader(ctx, key, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, &refusedError{fmt.Errorf("%s is not there", path.Base(key))}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil && strings.Contains(err.Error(), "checksum did not match") { // the driver has no type for it
		return nil, &refusedError{fmt.Errorf("%s is damaged: %w", path.Base(key), err)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	if int64(len(data)) > most {
		return nil, &refusedError{fmt.Errorf("%s holds more than %d bytes", path.Base(key), most)}
	}
	return data, nil
}

// Send writes into an object store what its copy holds and it does not, and
// returns the number of records. The raw inputs come first: who is killed
// between leaves objects that no record names, and never a record without them.
func (s *Store) Send(ctx context.Context) (sent int, err error) {
	if s.bucket == nil {
		return 0, nil
	}
	err = s.bucket.each(ctx, func(b *blob.Bucket, keys []string) error {
		there := map[string]bool{}
		for _, k := range keys {
			there[k] = true
		}
		leaves, err := s.leaves()
		if err != nil {
			return err
		}
		for _, l := range leaves {
			for _, name := range l.files {
				if !recordName.MatchString(name) {
					continue
				}
				done, err := s.send(ctx, b, filepath.Join(l.machine, l.code, l.kase, name), there)
				if err != nil {
					return err
				}
				if done {
					sent++
				}
			}
		}
		return nil
	})
	return sent, err
}

func (s *Store) send(ctx context.Context, b *blob.Bucket, rel string, there map[string]bool) (bool, error) {
	file := filepath.Join(s.dir, rel)
	data, err := disk.ReadFile(file, evidence.MaxRecord)
	if err != nil {
		return false, err
	}
	key := recordKey(rel, data)
	if there[key] {
		return false, nil
	}
	r, err := evidence.Decode(data)
	if err != nil {
		return false, fmt.Errorf("%s: %w", file, err)
	}
	packed, err := readRaw(filepath.Dir(file), r)
	if err != nil {
		return false, fmt.Errorf("%s: %w", file, err)
	}
	for _, raw := range r.Raw {
		if err := create(ctx, b, rawKey(rel, raw), packed[raw.Name]); err != nil {
			return false, err
		}
	}
	return true, create(ctx, b, key, data)
}

// create writes an object where there is none. One that is there has the same
// content, which its name says; who meets another writer of it is told so in
// several ways.
func create(ctx context.Context, b *blob.Bucket, key string, data []byte) error {
	err := b.WriteAll(ctx, key, data, &blob.WriterOptions{IfNotExist: true, ContentType: "application/octet-stream"})
	if err == nil {
		return nil
	}
	if there, failed := b.Exists(ctx, key); failed == nil && there {
		return nil
	}
	return fmt.Errorf("writing %s: %w", key, err)
}

// forget removes from an object store the records of these places, and raw
// inputs where no record is left.
func (s *Store) forget(ctx context.Context, places []string) error {
	return s.bucket.each(ctx, func(b *blob.Bucket, keys []string) error {
		left := map[string]bool{}
		for _, k := range keys {
			m := recordObject.FindStringSubmatch(k)
			if m == nil {
				continue
			}
			if !slices.Contains(places, filepath.FromSlash(m[1])+".json") {
				left[path.Dir(k)] = true
			} else if err := b.Delete(ctx, k); err != nil {
				return fmt.Errorf("removing %s: %w", k, err)
			}
		}
		for _, k := range keys {
			if rawObject.MatchString(k) && !left[path.Dir(k)] {
				if err := b.Delete(ctx, k); err != nil {
					return fmt.Errorf("removing %s: %w", k, err)
				}
			}
		}
		return nil
	})
}

// each opens the bucket and lists its objects.
func (b *bucket) each(ctx context.Context, do func(b *blob.Bucket, keys []string) error) error {
	opened, err := b.open(ctx)
	if err != nil {
		return fmt.Errorf("opening the store %s: %w", b.url, err)
	}
	defer opened.Close()
	var keys []string
	for list := opened.List(nil); ; {
		o, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("listing the store %s: %w", b.url, err)
		}
		keys = append(keys, o.Key)
	}
	if err := do(opened, keys); err != nil {
		return fmt.Errorf("the store %s: %w", b.url, err)
	}
	return nil
}

// seen are the objects that the copy holds already. A list that cannot be read
// is empty: everything is then read again.
func (b *bucket) seen() map[string]bool {
	seen := map[string]bool{}
	data, err := os.ReadFile(b.list())
	var names []string
	if err == nil && json.Unmarshal(data, &names) == nil {
		for _, n := range names {
			seen[n] = true
		}
	}
	return seen
}

func (b *bucket) remember(seen map[string]bool) error {
	data, err := json.Marshal(slices.Sorted(maps.Keys(seen)))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	return disk.WriteFile(b.list(), data)
}

func (b *bucket) list() string { return filepath.Join(b.dir, "seen.json") }
