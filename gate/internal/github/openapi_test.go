package github

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

// full names GitHub's whole description of its API, to prune it again:
//
//	npm pack @octokit/openapi@23.0.2 && tar -xzf octokit-openapi-23.0.2.tgz
//	go test ./gate/internal/github -run Prune -openapi $PWD/package/generated/api.github.com.json
var full = flag.String("openapi", "", "prune this description of GitHub's API into testdata")

const pruned = "testdata/openapi.json"

// used are the operations that gate sends.
var used = map[string][]string{
	"/repos/{owner}/{repo}/check-runs":                                       {"post"},
	"/repos/{owner}/{repo}/check-runs/{check_run_id}":                        {"patch"},
	"/repos/{owner}/{repo}/commits/{ref}/check-runs":                         {"get"},
	"/repos/{owner}/{repo}/statuses/{sha}":                                   {"post"},
	"/repos/{owner}/{repo}/issues/{issue_number}/comments":                   {"get", "post"},
	"/repos/{owner}/{repo}/issues/comments/{comment_id}":                     {"patch"},
	"/repos/{owner}/{repo}/pulls":                                            {"get"},
	"/repos/{owner}/{repo}/pulls/{pull_number}":                              {"get"},
	"/repos/{owner}/{repo}/pulls/{pull_number}/files":                        {"get"},
	"/repos/{owner}/{repo}/actions/runs/{run_id}":                            {"get"},
	"/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts":                  {"get"},
	"/repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}": {"get"},
	"/repos/{owner}/{repo}/compare/{basehead}":                               {"get"},
	"/repos/{owner}/{repo}/contents/{path}":                                  {"get"},
}

// large are schemas of replies of which gate reads little: what it reads is
// kept, and the rest is not described.
var large = map[string][]string{
	"pull-request-simple": {"number", "head", "base", "state"}, "pull-request": {"number", "head", "base", "state"},
	"minimal-repository": {"id", "full_name"}, "repository": {"id", "full_name"}, "nullable-repository": {"id", "full_name"}, "full-repository": {"id", "full_name"},
	"simple-user": {"login", "id", "type"}, "nullable-simple-user": {"login", "id", "type"},
	"nullable-integration": {"id", "slug"}, "integration": {"id", "slug"},
	"commit": {"sha"}, "commit-comparison": {"merge_base_commit", "files", "status", "ahead_by", "behind_by"},
	"workflow-run":  {"id", "run_attempt", "event", "path", "head_sha", "head_branch", "head_repository", "repository", "status", "conclusion", "created_at", "run_started_at", "html_url"},
	"issue-comment": {"id", "body", "user", "html_url"}, "reactions-rollup": {},
}

type node = map[string]any

// TestPrune makes the small description of the whole one: what gate sends, every
// schema that this needs, no prose. The overlay adds what GitHub enforces and
// does not say.
func TestPrune(t *testing.T) {
	if *full == "" {
		t.Skip("-openapi names no file")
	}
	data, err := os.ReadFile(*full)
	if err != nil {
		t.Fatal(err)
	}
	var whole node
	if err := json.Unmarshal(data, &whole); err != nil {
		t.Fatal(err)
	}
	paths, components := node{}, node{}
	for path, methods := range used {
		from := whole["paths"].(node)[path].(node)
		kept := node{}
		for _, m := range methods {
			op := from[m].(node)
			for _, drop := range []string{"description", "summary", "tags", "externalDocs"} {
				delete(op, drop)
			}
			replies := node{}
			for status, reply := range op["responses"].(node) {
				if status[0] == '2' || status == "302" {
					if n := reply.(node); n["$ref"] == nil {
						n["description"], n["content"] = ".", orEmpty(n["content"])
					}
					replies[status] = reply
				}
			}
			op["responses"] = replies
			strict(op)
			kept[m] = op
		}
		path = strings.NewReplacer("{ref}", "{ref:.+}", "{path}", "{path:.+}", "{basehead}", "{basehead:.+}").Replace(path)
		paths[path] = kept
	}
	lean(paths)
	collectRefs(whole, paths, components)
	out := node{"openapi": whole["openapi"], "info": node{"title": "GitHub", "version": "23.0.2", "license": node{"name": "MIT"}}, "paths": paths, "components": components}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pruned, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(text))
}

// strict is the overlay: bodies with no other fields, and limits that GitHub
// answers with 422.
func strict(op node) {
	body, ok := op["requestBody"].(node)
	if !ok {
		return
	}
	schema := body["content"].(node)["application/json"].(node)["schema"].(node)
	schema["additionalProperties"] = false
	properties := schema["properties"].(node)
	if p, ok := properties["body"].(node); ok {
		p["maxLength"] = 65536
	}
	if p, ok := properties["description"].(node); ok {
		p["maxLength"] = 140
	}
	if out, ok := properties["output"].(node); ok {
		out["additionalProperties"] = false
		out["required"] = []any{"title", "summary"}
		out["properties"].(node)["title"].(node)["maxLength"] = 255
		a := out["properties"].(node)["annotations"].(node)["items"].(node)
		a["additionalProperties"] = false
		a["properties"].(node)["start_line"].(node)["minimum"] = 1
		a["properties"].(node)["message"].(node)["maxLength"] = 65536
		a["properties"].(node)["title"].(node)["maxLength"] = 255
	}
}

// lean drops prose and examples.
func lean(at any) {
	switch x := at.(type) {
	case node:
		for key, v := range x {
			_, text := v.(string)
			if key == "example" || key == "examples" || key == "x-github" || key == "externalDocs" || text && key == "description" && x["schema"] == nil && x["content"] == nil {
				delete(x, key)
				continue
			}
			if text && key == "description" {
				x[key] = "."
			}
			lean(v)
		}
	case []any:
		for _, v := range x {
			lean(v)
		}
	}
}

// collectRefs copies every component that is named, once.
func collectRefs(whole node, at any, into node) {
	switch x := at.(type) {
	case node:
		if ref, ok := x["$ref"].(string); ok {
			parts := strings.Split(strings.TrimPrefix(ref, "#/components/"), "/")
			kind, name := parts[0], parts[1]
			if into[kind] == nil {
				into[kind] = node{}
			}
			if into[kind].(node)[name] != nil {
				return
			}
			found := whole["components"].(node)[kind].(node)[name]
			if keep, ok := large[name]; ok {
				small := node{}
				for _, k := range keep {
					small[k] = found.(node)["properties"].(node)[k]
				}
				found = node{"type": "object", "properties": small}
				if len(keep) > 0 {
					found.(node)["required"] = anys(keep)
				}
				if strings.HasPrefix(name, "nullable") {
					found.(node)["nullable"] = true
				}
			}
			lean(found)
			if kind == "responses" || kind == "headers" || kind == "parameters" {
				if n := found.(node); kind == "responses" && n["description"] == nil {
					n["description"] = "."
				}
			}
			into[kind].(node)[name] = found
			collectRefs(whole, found, into)
			return
		}
		for _, v := range x {
			collectRefs(whole, v, into)
		}
	case []any:
		for _, v := range x {
			collectRefs(whole, v, into)
		}
	}
}

func orEmpty(content any) any {
	if content == nil {
		return node{}
	}
	return content
}

func anys(list []string) []any {
	out := []any{}
	for _, s := range list {
		out = append(out, s)
	}
	return out
}
