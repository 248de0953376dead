package command

import (
	"strings"
	"testing"
)

func TestEnvironment(t *testing.T) {
	hidden := []string{"GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE",
		"AZURE_CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS", "SSH_AUTH_SOCK", "NPM_TOKEN", "MY_API_KEY", "DB_PASSWORD", "NETRC", "HTTPS_PROXY",
		"PIP_INDEX_URL", "PIPX", "GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EXTERNAL_DIFF",
		"NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "NVCC_CCBIN", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX",
		"CUDA_INJECTION64_PATH", "CUDA_LAUNCH_BLOCKING", "BASH_ENV", "ENV_OF_MINE", "PATHS"}
	for _, name := range hidden {
		t.Setenv(name, "hidden-value")
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "3")
	t.Setenv("CUDA_CACHE_DISABLE", "1")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	env := func(c Command) string {
		c.Path, c.Most, c.Limit = "/usr/bin/env", 1<<20, shell("", nil).Limit
		return "\n" + string(run(t, c).Stdout)
	}
	text := env(Command{Env: []string{"CUDA_VISIBLE_DEVICES=GPU-1"}})
	if strings.Contains(text, "hidden-value") {
		t.Errorf("a variable passes that should not:\n%s", text)
	}
	for _, want := range []string{"CUDA_VISIBLE_DEVICES=GPU-1\n", "CUDA_CACHE_DISABLE=1\n", "GIT_CONFIG_NOSYSTEM=1\n", "LC_ALL=C\n", "PATH=/"} {
		if strings.Count(text, "\n"+want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, text)
		}
	}
	text = env(Command{Pass: []string{"PIP_*", "HTTPS_PROXY", "ENV"}})
	for name, want := range map[string]bool{"PIP_INDEX_URL": true, "HTTPS_PROXY": true, "PIPX": false, "ENV_OF_MINE": false, "GITHUB_TOKEN": false} {
		if strings.Contains(text, "\n"+name+"=hidden-value\n") != want {
			t.Errorf("%s passes: %v, want %v", name, !want, want)
		}
	}
}
