// Command minimal is the smallest useful host: minimal TOOL '{"its":"arguments"}'. Tools see this folder.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/toolhost/toolhost/supervisor"
)

func main() {
	host, err := supervisor.New(context.Background(), supervisor.Config{Sandbox: supervisor.Policy{Read: []string{"."}}})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close()
	tool, arguments := supervisor.Tool{Path: os.Args[1]}, []byte(os.Args[2])
	result := host.Call(context.Background(), supervisor.Request{Tool: tool, Arguments: arguments})
	fmt.Println(result.Status, result.Text(), result.Message)
}
