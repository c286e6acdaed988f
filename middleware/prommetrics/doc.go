// Package prommetrics counts for Prometheus what middlewares and limiters do.
//
//	metrics := ratelimit.Must(prommetrics.New(prometheus.DefaultRegisterer, nil))
//	limiter := ratelimit.Must(shared.New(rdb, nil))
//	metrics.Watch("redis", limiter)
//	limited := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Observer: metrics}, policies...))
//	metrics.WatchOffenders(limited)
//
// Values of labels are names in the configuration (policies, tiers, limiters)
// and words of this library; nothing that a client sends is ever one.
//
// # Of the middleware, as its Observer
//
//	Name, after ratelimit_            Labels                   What
//	requests_total                    policy, tier, outcome    requests, by what each policy made of them
//	unknown_tier_requests_total       policy                   that named a tier which is not configured
//	abandoned_requests_total          policy                   held for their turn, and gave up
//	bans_total                        policy                   keys banned for their denials
//	settlements_total                 policy, result           late charges and returns: made, failed, dropped
//	settlement_lag_seconds                                     histogram, native and classic: from when one is due
//	                                                           until it is made
//	candidate_divergences_total       policy, live, candidate  a candidate would have decided otherwise
//	decision_duration_seconds         source                   histogram, native and classic: shared, local, undecided
//	distinct_keys                     policy                   gauge: different keys of the last hour, an estimate
//	top_offender_denial_ratio         policy                   gauge: one key's part of the last minutes' denials
//
// The last needs WatchOffenders. The outcomes are allowed, denied,
// shadow_denied (a shadow policy would have denied), degraded_allowed and
// degraded_denied (this process decided alone, without the shared limiter),
// failed_open and failed_closed (nobody decided), key_error (no identity, or one
// that is not valid), banned, unasked (another policy was known to deny), cancelled (the
// client has gone) and invalid (a mistake of the program).
//
// # Of limiters, after Watch
//
// All have the label limiter, the name that Watch was given.
//
//	breaker_open                                               gauge: 1 while the circuit is open and Redis is bypassed
//	breaker_trips_total                                        times that it has opened
//	instances                                                  gauge: live instances
//	fallback_local_checks_total                                checks that this instance decided alone
//	fallback_passed_checks_total                               checks that failed open
//	fallback_refused_calls_total                               calls that failed closed
//	fallback_owed_keys                                         gauge: keys whose local charges Redis has yet to receive
//	fallback_handed_back_units_total                           units that it received afterwards
//	fallback_lost_units_total                                  units that it could not receive
//	redis_checks_total                                         checks that Redis was asked
//	redis_scripts_total                                        scripts that were sent
//	redis_script_loads_total                                   scripts that Redis did not know
//	redis_errors_total                reason                   scripts that failed, by shared.Reason
//	redis_failed_returns_total                                 failures to give back units
//	redis_missing_states_total                                 checks that found no stored state
//	redis_batch_checks                                         histogram: checks in a script
//	deny_cache_hits_total                                      calls denied from memory, without Redis
//	deny_cache_keys                                            gauge: keys whose denials are remembered
//	lease_keys                                                 gauge: keys that are leased
//	lease_units                                                gauge: units on lease, not yet spent
//	lease_blocks_total                                         blocks of units that were leased
//	lease_taken_units_total                                    units that were leased
//	lease_spent_units_total                                    units on lease that admitted requests
//	lease_returned_units_total                                 units on lease that went back
//	lease_lost_units_total                                     units on lease that nobody can use
//	memory_keys                                                gauge: keys in memory
//	memory_expired_keys_total                                  keys forgotten because they were full again
//	memory_evicted_keys_total                                  keys forgotten to make room
//	memory_refused_keys_total                                  new keys without room
//
// A jump of redis_missing_states_total without one of requests means that Redis
// forgets limits. Alerts and a dashboard are in examples/chi-server/observability.
package prommetrics
