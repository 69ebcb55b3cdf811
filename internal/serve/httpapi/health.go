package httpapi

import (
	"github.com/toolhost/toolhost/api"
)

func (s *Server) health(q *request) error {
	return q.answer(api.Health{Status: "ok", Version: s.config.Version})
}

func (s *Server) ready(q *request) error {
	if err := s.accepts(); err != nil {
		return err
	}
	return q.answer(api.Health{Status: "ok", Version: s.config.Version})
}

func (s *Server) tools(q *request) error {
	list := api.Tools{Tools: []api.Tool{}, Problems: []string{}}
	name, all := q.r.URL.Query().Get("name"), q.who.UsesAll()
	if name != "" && !q.who.MayUse(name) {
		return q.answer(list)
	}
	tools, problems := s.config.Tools.Tools(q.r.Context(), name)
	list.Tools = make([]api.Tool, 0, len(tools))
	for _, tool := range tools {
		if q.who.MayUse(tool.Name) && childrenOf(q.r.Context()).shows(s, tool.Name) {
			tool.Mode = q.who.Mode(tool.Name, tool.Mode)
			list.Tools = append(list.Tools, tool)
		}
	}
	for _, problem := range problems {
		if all { // they name tools
			list.Problems = append(list.Problems, problem.Error())
		}
	}
	return q.answer(list)
}

func (s *Server) openAPI(q *request) error {
	respondRaw(q.w, q.route.status, document)
	return nil
}
