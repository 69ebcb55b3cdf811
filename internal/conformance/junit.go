package conformance

import (
	"encoding/xml"
	"fmt"
	"io"
)

// The JUnit XML that continuous integration reads: one test case a check. A
// warning is a case that passed and printed something.
type (
	junitSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Time     string     `xml:"time,attr"`
		Suite    junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure,omitempty"`
		Skipped *junitMessage `xml:"skipped,omitempty"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report as JUnit XML.
func (r *Report) JUnit(w io.Writer) error {
	suite := junitSuite{
		Name: r.Binary, Tests: len(r.Checks), Failures: r.Count(Fail), Skipped: r.Count(Skip), Time: seconds(r.ElapsedMs),
		Properties: []junitProperty{{"sha256", r.SHA256}, {"version", r.Version}},
	}
	for _, c := range r.Checks {
		suite.Cases = append(suite.Cases, c.junit())
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	out := xml.NewEncoder(w)
	out.Indent("", "  ")
	err := out.Encode(junitSuites{
		Name: "toolsdk test", Tests: suite.Tests, Failures: suite.Failures, Time: suite.Time, Suite: suite,
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "\n")
	return err
}

func (c *Check) junit() junitCase {
	class := "binary"
	if c.Tool != "" {
		class = "tool." + c.Tool
	}
	j := junitCase{Class: class, Name: c.ID, Time: seconds(c.ElapsedMs)}
	switch c.Status {
	case Fail:
		j.Failure = &junitMessage{Message: c.Detail, Type: c.ID, Text: c.Title + "\n" + c.Detail + "\nto mend it: " + c.Fix}
	case Skip:
		j.Skipped = &junitMessage{Message: c.Detail}
	case Warn:
		j.Out = "warning: " + c.Detail + "\nto mend it: " + c.Fix
	}
	return j
}

func seconds(ms int64) string { return fmt.Sprintf("%.3f", float64(ms)/1000) }
