package httpapi

import "github.com/toolhost/toolhost/client"

func (s *Server) health(q *request) error {
	return q.answer(client.Health{Status: "ok", Version: s.config.Version})
}

func (s *Server) ready(q *request) error {
	if err := s.accepts(); err != nil {
		return err
	}
	return q.answer(client.Health{Status: "ok", Version: s.config.Version})
}

func (s *Server) tools(q *request) error {
	tools, problems := s.config.Tools.Tools(q.r.Context())
	list := client.Tools{Tools: append([]client.Tool{}, tools...), Problems: []string{}}
	for _, problem := range problems {
		list.Problems = append(list.Problems, problem.Error())
	}
	return q.answer(list)
}

func (s *Server) openAPI(q *request) error {
	respondRaw(q.w, q.route.status, document)
	return nil
}
