package event

import (
	"os"
	"path/filepath"
	"testing"
)

func environment(t *testing.T, name, payload string) func(string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(path, []byte(payload), 0o644); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": path, "GITHUB_RUN_ATTEMPT": "2"}
	return func(name string) string { return values[name] }
}

func TestNoEventOutsideAWorkflow(t *testing.T) {
	env := environment(t, "push", `{}`)
	desk := func(name string) string {
		if name == "GITHUB_ACTIONS" {
			return ""
		}
		return env(name)
	}
	if e, err := Read(desk); e != nil || err != nil {
		t.Errorf("got %v, %v", e, err)
	}
}

// TestAForkIsToldByNumber: a fork can have the name of the repository, and a
// head without a repository is nobody's.
func TestAForkIsToldByNumber(t *testing.T) {
	for payload, foreign := range map[string]bool{
		`{"repository":{"id":1},"pull_request":{"number":3,"head":{"sha":"a","repo":{"id":1}},"base":{"sha":"b"}}}`:                          false,
		`{"repository":{"id":1,"full_name":"o/r"},"pull_request":{"head":{"sha":"a","repo":{"id":2,"full_name":"o/r"}},"base":{"sha":"b"}}}`: true,
		`{"repository":{"id":1},"pull_request":{"head":{"sha":"a","repo":null},"base":{"sha":"b"}}}`:                                         true,
	} {
		e, err := Read(environment(t, PullRequest, payload))
		if err != nil {
			t.Fatal(err)
		}
		if e.Foreign() != foreign || e.Attempt != 2 {
			t.Errorf("%s: foreign is %v, attempt is %d", payload, e.Foreign(), e.Attempt)
		}
	}
}

// TestAnEventThatCannotBeReadIsAnError: nothing is guessed about who is judged.
func TestAnEventThatCannotBeReadIsAnError(t *testing.T) {
	for _, payload := range []string{``, `{`, `[]`, `{}`, `{"pull_request":null}`} {
		if e, err := Read(environment(t, PullRequest, payload)); err == nil {
			t.Errorf("%q is read as %+v", payload, e)
		}
	}
}
