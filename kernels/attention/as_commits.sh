#!/bin/sh
# Makes a git repository in a new FOLDER in which the rungs of the ladder follow each
# other as commits do: kernels/attention/r02_to_r03 is r02 in its first commit and r03 in
# its second. gate judges there what each step did to the time:
#
#   kernels/attention/as_commits.sh FOLDER
#   cd FOLDER && gate check --base HEAD~1 --store …/kernels/evidence
set -eu
# The user's configuration of git, and variables that name another repository, must not count.
unset CDPATH $(git rev-parse --local-env-vars)
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
here=$(cd "$(dirname "$0")" && pwd)
mkdir "$1"
cd "$1"
mkdir -p kernels/attention
cp "$here"/op.yaml "$here"/attention.cc "$here"/attention.h kernels/attention/
cat >policies.yaml <<'POLICY'
version: 1
kernels: [kernels/attention/*/kernel.yaml]
machines: [h200]
store: evidence
latency: {profile: standard, budget: 240s}
rules:
  - {id: error,   metric: check.relative_error, limit: 1e-3}
  - {id: latency, metric: latency.typical,      max_regression: 2%, floor: 50ns}
POLICY

# put FOLDER RUNG: what the folder holds is that rung, on the case that all rungs have.
put() {
  rm -rf "$1"
  mkdir "$1"
  find "$here" -path "$here/$2_*" -type f ! -name README.md -exec cp {} "$1" \;
  sed -i 's/^cases:.*/cases: [mission]/' "$1/kernel.yaml"
}

# r13 is built for another architecture than r12.
rungs="r01 r02 r03 r04a r04b r05 r06 r07 r08 r09 r10 r11 r12"
for side in base head; do
  before=
  for rung in $rungs; do
    if [ -n "$before" ]; then
      if [ $side = base ]; then of=$before; else of=$rung; fi
      put "kernels/attention/${before}_to_$rung" "$of"
      if [ $side = head ]; then # the functions of a rung are called by its number
        grep -oh 'attn_r[0-9a-z_]*' "$here/$before"_*/*.cu | sort -u |
          sed 's/.*/  - {entry: &, reason: another rung}/' | { echo 'retire:' && cat; } >>"kernels/attention/${before}_to_$rung/kernel.yaml"
      fi
    fi
    before=$rung
  done
  if [ $side = base ]; then git init -q -b main --template=; fi
  git add -A
  git -c user.name=ladder -c user.email=ladder@localhost commit -q -m "The $side of every step"
done
