// Program outage kills Redis under four rate limiters, and draws what their clients notice.
//
// Each contestant runs as two instances, which share one limit through Redis. One client sends twice the limit, all the
// time. A quarter into the run Redis is killed. Later it is started again, first with a slow network and then with a fast
// one. At last the client keeps the limit, and the network stalls once a second. The program writes a picture, a page with a table, and a recording for the page of the example server.
//
//	penstock.go  penstock_ahead.go                      penstock without and with Options.Ahead
//	redis_rate.go  ulule.go  httprate.go                the others, as their own documentation recommends them
//	plan.go      the times of a run, and the load
//	load.go      the client
//	figures.go   what the client has noticed, for each part of the run
//	picture.go   the picture
//	report.go    the page
//	story.go     the recording
package main
