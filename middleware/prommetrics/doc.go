// Package prommetrics exports metrics of Middlewares, of their limiters, and of clients
// to Prometheus.
//
//	opts := &ratelimit.Options{Observers: []ratelimit.Observer{ratelimit.Must(prommetrics.New(prometheus.DefaultRegisterer, nil))}}
//	limited := ratelimit.Must(ratelimit.New(limiter, opts, policies...))
//
// All series of a policy exist before its first request, except the outcomes cancelled and invalid, and, with a
// Memory, those of an outage. Clients cannot add series.
//
// # Metrics of policies
//
//	Name, after ratelimit_            Labels                   Meaning
//	decisions_total                   result                   requests, each counted once: allowed, denied, refused; see
//	                                                           ratelimit.Verdict.Result
//	requests_total                    policy, tier, outcome    requests that a policy saw; see ratelimit.Outcome. Only
//	                                                           allowed and denied have a tier
//	near_limit_total                  policy, tier             admitted requests that leave less than a fifth of the limit
//	busiest_second_requests           seen                     gauge: requests in the busiest second of the last minute:
//	                                                           offered, and admitted to handlers
//	findings                          code                     gauge: present configuration problems; RUNBOOK.md has the codes
//	unknown_tier_requests_total       policy                   with Tiers: requests with a tier that the policy lacks
//	abandoned_requests_total                                   held requests that were not served
//	bans_total                        policy                   with Ban: keys that the policy banned
//	settlements_total                 result                   late charges and returns: made, failed or dropped
//	settlement_lag_seconds                                     histogram: delay of settlements
//	candidate_divergences_total       policy, live, candidate  with Candidate: requests that the candidate would decide otherwise
//	decision_duration_seconds         source                   histogram: shared, local, undecided; without requests that
//	                                                           this process denies by a ban
//	limit_units                       policy, tier             gauge: units of the limit in force, in its window or at once
//	limit_window_seconds              policy, tier, limit,     gauge: its window. limit is its text, e.g.
//	                                  mode, capacity           "token-bucket 60/1m"; mode is on, shadow or off;
//	                                                           capacity is Policy.Capacity: true, false
//	tenants                           policy                   gauge, with ShareBy: tenants that are present in this process
//	share_units                       policy                   gauge, with ShareBy: units of the limit in force that are the
//	                                                           share of a tenant of weight 1, by all instances' tenants
//	top_offender_denial_ratio         policy, tier             gauge: largest share of one key in the denials of the
//	                                                           last minutes. tier is the key's, so it may change
//	denied_keys                       policy                   gauge: keys denied in the last 10 to 20 minutes, up to 128
//	client_denials                    policy, client           gauge: denials of a client of Options.Clients in the
//	                                                           last 10 to 20 minutes
//	start_time_seconds                                         gauge: Unix time of New: the counters count since then
//
// The outcome allowed of a policy does not say that the service served the request: another policy may have denied it,
// and then no policy has charged it. The histograms are native and classic. The gauges of a policy vanish when no open Middleware has it. The limit in
// force includes an override of all keys, and no override of a single key. Policies of one name add up, except that the
// largest top_offender_denial_ratio counts.
//
// # Metrics of limiters
//
// All have the label limiter, which is ratelimit.Options.LimiterName. Several of one name become memory, memory-2, in
// the order of registration. A limiter needs a method Stats. Its metrics vanish when all its Middlewares are closed.
//
//	breaker_open                                               gauge: open circuits. Redis has one; in a Cluster, each
//	                                                           master has one. An open circuit bypasses it
//	breaker_trips_total                                        openings of circuits
//	instances                                                  gauge: live instances, some seconds after they start
//	fallback_local_checks_total                                checks that this instance decided alone
//	fallback_passed_checks_total                               checks that failed open
//	fallback_refused_calls_total                               calls that failed closed
//	fallback_owed_keys                                         gauge: keys with local charges for Redis
//	fallback_handed_back_units_total                           local units that Redis received later
//	fallback_lost_units_total                                  local units that Redis never received
//	fallback_unknown_units                                     gauge: local units that Redis has perhaps charged
//	fallback_kept_returns                                      gauge: returns of units that wait for Redis
//	fallback_late_returns_total                                returns that Redis received late
//	fallback_lost_returns_total                                returns whose units may stay charged
//	redis_checks_total                                         checks sent to Redis
//	redis_scripts_total                                        scripts sent to Redis
//	redis_script_loads_total                                   scripts that Redis did not know
//	redis_errors_total                reason                   failures by shared.Reason
//	redis_round_trip_seconds                                   histogram: round trips of scripts, including late replies and
//	                                                           probes
//	redis_excused_round_trips_total                            round trips that expired because this process was late
//	redis_missing_states_total                                 checks without a stored state
//	redis_batch_checks                                         histogram: checks in a script
//	views_denied_total                                         calls denied from memory, without Redis
//	views_keys                                                 gauge: keys whose last answers the limiter keeps
//	ahead_admitted_total                                       calls admitted before Redis charged them
//	ahead_asked_total                 reason                   other calls that Options.Ahead could admit, by why they asked: near,
//	                                                           allowance, census, busy, unknown_key or trouble
//	ahead_overdrawn_units_total                                units admitted ahead that Redis would have denied
//	ahead_unacknowledged_units                                 gauge: units admitted ahead that Redis has not acknowledged
//	memory_keys                                                gauge: keys in memory
//	memory_expired_keys_total                                  expired keys
//	memory_evicted_keys_total                                  keys removed to make room
//	memory_refused_keys_total                                  new keys without room
//
// Only shared limiters have the metrics above memory_keys. If
// redis_missing_states_total rises and requests_total does not, Redis loses
// limits. Alerts and dashboards are in examples/chi-server/observability.
//
// # Metrics of clients
//
// [NewClient] has the metrics of package client's Transports. The label client is client.Options.Name.
//
//	Name, after ratelimit_client_  Labels   Meaning
//	requests_total                 outcome  requests sent: answered, denied, failed
//	retries_total                           requests sent again after a denial
//	waits_total                    reason   waits: retry, pace, limit
//	wait_seconds_total             reason   time that requests have waited
//	given_up_total                 reason   requests not sent (again): wait, attempts, share, request, final
package prommetrics
