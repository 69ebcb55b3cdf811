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
	tools, problems := s.config.Tools.Tools(q.r.Context(), q.r.URL.Query().Get("name"))
	list := api.Tools{Tools: append([]api.Tool{}, tools...), Problems: []string{}}
	for _, problem := range problems {
		list.Problems = append(list.Problems, problem.Error())
	}
	return q.answer(list)
}

func (s *Server) openAPI(q *request) error {
	respondRaw(q.w, q.route.status, document)
	return nil
}
