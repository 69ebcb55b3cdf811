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
	if len(os.Args) != 3 {
		log.Fatal("usage: minimal TOOL ARGUMENTS")
	}
	host, err := supervisor.New(context.Background(), supervisor.Config{Sandbox: supervisor.Policy{Read: []string{"."}, Allow: []string{"sharedUid"}}})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close()
	result := host.Call(context.Background(), supervisor.Request{Tool: supervisor.Tool{Path: os.Args[1]}, Arguments: []byte(os.Args[2])})
	fmt.Println(result.Status, result.Text(), result.Message)
}
