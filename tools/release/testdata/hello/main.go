// Command hello is a program to look at.
package main

func main() { println("hello") }
