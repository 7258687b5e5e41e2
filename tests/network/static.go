// A program with Go's own resolver, and no C library.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	answer, err := http.Get("http://" + os.Args[1] + "/")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	io.Copy(os.Stdout, answer.Body)
}
