package plan

import (
	"errors"
	"maps"

	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// A Selection chooses cells of a recipe.
type Selection struct {
	Recipe *recipe.Recipe
	Filter matrix.Filter
	By     []Through // selectors of the recipe that chose values of the filter
}

// Through is a selector with its value and the values of axes that it chose.
type Through struct {
	Name    string            `json:"name"`
	Value   string            `json:"value"`
	Axes    map[string]string `json:"axes"`
	Because string            `json:"because"`
	Source  string            `json:"source"`
}

// Select applies the selectors given by name, such as torch: 2.11, to the filter.
func Select(r *recipe.Recipe, filter matrix.Filter, given map[string]string) (Selection, error) {
	of := Selection{Recipe: r, Filter: filter}
	var errs []error
	for _, s := range r.Selectors {
		text, is := given[s.Name]
		if !is {
			continue
		}
		v, err := s.Choose(text)
		if err != nil {
			errs = append(errs, matrix.FlagError(s.Name, err))
			continue
		}
		axes, err := r.Narrow(s, v, of.Filter)
		errs = append(errs, err)
		of.Filter = maps.Clone(of.Filter)
		maps.Copy(of.Filter, axes)
		of.By = append(of.By, Through{s.Name, v.Value, axes, s.Because, s.Source})
	}
	return of, errors.Join(errs...)
}
