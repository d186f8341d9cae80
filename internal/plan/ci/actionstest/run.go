package actionstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Service is what GitHub has while a workflow runs.
type Service struct {
	Checkout string            // directory of the repository that calls the workflow
	Own      string            // directory of the repository that the workflow is in
	Dir      string            // for artifacts, caches and the directories of jobs
	Env      map[string]string // of every runner; nothing else of this host is seen
	Inputs   map[string]string
	Secrets  map[string]string
	Event    map[string]any // github.event
}

// Result is what became of a workflow.
type Result struct {
	Jobs    []JobResult // in the order in which they ran, those of a matrix apart
	Summary string      // all that was written to GITHUB_STEP_SUMMARY
}

// JobResult is what became of a job.
type JobResult struct {
	ID, Name string
	Result   string // success, failure or skipped
	Log      string
}

// run is one execution of a workflow.
type run struct {
	Service
	workflow Workflow
	needs    map[string]any
	result   Result
}

// Execute runs all jobs of a workflow. A job that fails is part of the result; an
// error is something in the workflow that is not known here, or cannot be.
func (s Service) Execute(ctx context.Context, w Workflow) (Result, error) {
	inputs, err := given(w.On.Call.Inputs, s.Inputs)
	if err != nil {
		return Result{}, err
	}
	s.Inputs = inputs
	r := &run{Service: s, workflow: w, needs: map[string]any{}}
	order, err := inOrder(w.Jobs)
	if err != nil {
		return Result{}, err
	}
	for _, id := range order {
		if err := r.job(ctx, id); err != nil {
			return r.result, fmt.Errorf("job %s: %w", id, err)
		}
	}
	return r.result, nil
}

// given adds the defaults to the inputs that were given, and refuses others than
// are declared.
func given(declared map[string]input, values map[string]string) (map[string]string, error) {
	all := map[string]string{}
	for name, in := range declared {
		all[name] = in.Default
		if _, has := values[name]; !has && in.Required {
			return nil, fmt.Errorf("the input %s is missing", name)
		}
	}
	for name, value := range values {
		if _, known := declared[name]; !known {
			return nil, fmt.Errorf("there is no input %s", name)
		}
		all[name] = value
	}
	return all, nil
}

// inOrder returns the jobs so that each comes after those that it needs.
func inOrder(jobs map[string]job) ([]string, error) {
	var order []string
	for len(order) < len(jobs) {
		before := len(order)
		for _, id := range slices.Sorted(maps.Keys(jobs)) {
			waits := func(need string) bool { return !slices.Contains(order, need) }
			if !slices.Contains(order, id) && !slices.ContainsFunc(jobs[id].Needs, waits) {
				order = append(order, id)
			}
		}
		if len(order) == before {
			return nil, errors.New("jobs wait for each other, or for one that is not there")
		}
	}
	return order, nil
}

// job decides whether a job runs, runs it as often as its matrix says, and keeps
// its result for those that need it.
func (r *run) job(ctx context.Context, id string) error {
	j := r.workflow.Jobs[id]
	around := r.scope(j)
	holds, err := around.holds(j.If)
	if err != nil {
		return err
	}
	state, outputs := "skipped", map[string]any{}
	for name := range j.Outputs {
		outputs[name] = ""
	}
	if !holds {
		r.result.Jobs = append(r.result.Jobs, JobResult{ID: id, Name: id, Result: state})
	} else {
		items, err := instances(around, j)
		if err != nil {
			return err
		}
		state = "success"
		for n, item := range items {
			at := r.scope(j)
			at.ok = true
			at.contexts["matrix"] = item
			done, err := r.instance(ctx, id, n, at, outputs)
			if err != nil {
				return err
			}
			if r.result.Jobs = append(r.result.Jobs, done); done.Result != "success" {
				state = "failure"
			}
		}
	}
	r.needs[id] = map[string]any{"result": state, "outputs": outputs}
	return nil
}

// scope is what the expressions of a job see: the contexts that are there before
// its steps are.
func (r *run) scope(j job) scope {
	s := scope{ok: true, contexts: map[string]any{
		"github": map[string]any{
			"event": r.Event, "event_name": "push", "repository": "octo/site", "ref": "refs/heads/main", "workflow": r.workflow.Name,
		},
		"inputs":  anyMap(r.Inputs),
		"secrets": secrets(r.workflow.On.Call.Secrets, r.Secrets),
	}}
	needs := map[string]any{}
	for _, id := range j.Needs {
		needs[id] = r.needs[id]
		s.ok = s.ok && r.needs[id].(map[string]any)["result"] == "success"
	}
	s.contexts["needs"] = needs
	return s
}

// secrets are those that the workflow declares, empty where the caller has none.
func secrets(declared map[string]secret, values map[string]string) map[string]any {
	all := map[string]any{}
	for name := range declared {
		all[name] = values[name]
	}
	return all
}

// instances are the items of a job's matrix, or one that is empty.
func instances(s scope, j job) ([]map[string]any, error) {
	if j.Strategy.Matrix == "" {
		return []map[string]any{{}}, nil
	}
	value, err := s.value(j.Strategy.Matrix)
	if err != nil {
		return nil, err
	}
	matrix, _ := value.(map[string]any)
	include, _ := matrix["include"].([]any)
	if len(matrix) != 1 || len(include) == 0 {
		return nil, fmt.Errorf("a matrix of %v: GitHub takes none without items, and only include is known here", value)
	}
	var items []map[string]any
	for _, item := range include {
		object, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("an item of the matrix is %v", item)
		}
		items = append(items, object)
	}
	return items, nil
}

// instance runs the steps of one job on a runner of its own.
func (r *run) instance(ctx context.Context, id string, n int, at scope, outputs map[string]any) (JobResult, error) {
	j := r.workflow.Jobs[id]
	done := JobResult{ID: id, Name: id}
	m, err := newRunner(r, filepath.Join(r.Dir, fmt.Sprintf("%s-%d", id, n)), at)
	if err != nil {
		return done, err
	}
	if j.Name != "" {
		if done.Name, err = at.text(j.Name); err != nil {
			return done, err
		}
	}
	if label, err := at.text(j.RunsOn); err != nil || label == "" {
		return done, fmt.Errorf("runs-on is %q: %w", label, err)
	}
	if m.env, err = at.texts(j.Env); err != nil {
		return done, err
	}
	at.contexts["runner"] = map[string]any{"temp": m.temp}
	if err := m.steps(ctx, j.Steps, at); err != nil {
		return done, err
	}
	for name, template := range j.Outputs {
		if m.failed {
			continue // what it would have come from may not be there
		}
		if outputs[name], err = m.here(at).text(template); err != nil {
			return done, err
		}
	}
	done.Log, done.Result = m.log.String(), "failure"
	if !m.failed {
		done.Result, err = "success", m.saveCaches()
	}
	summary, fault := os.ReadFile(m.summary)
	r.result.Summary += string(summary)
	return done, errors.Join(err, fault)
}

func anyMap(values map[string]string) map[string]any {
	all := map[string]any{}
	for name, value := range values {
		all[name] = value
	}
	return all
}

// String lists the jobs with their results, one a line.
func (r Result) String() string {
	var out strings.Builder
	for _, j := range r.Jobs {
		fmt.Fprintf(&out, "%s: %s: %s\n", j.ID, j.Name, j.Result)
	}
	return out.String()
}
