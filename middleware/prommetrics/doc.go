// Package prommetrics exports metrics of Middlewares, of their limiters, and of clients to Prometheus.
//
//	opts := &ratelimit.Options{Observers: []ratelimit.Observer{ratelimit.Must(prommetrics.New(prometheus.DefaultRegisterer, nil))}}
//	limited := ratelimit.Must(ratelimit.New(limiter, opts, policies...))
//
// All series of a policy exist before its first request, except the outcomes cancelled and invalid, and, with a
// Memory, those of an outage. Clients cannot add series. Alerts and dashboards are in
// examples/chi-server/observability.
//
// # Metrics of policies
//
//	Name, after ratelimit_            Labels                   Meaning
//	decisions_total                   result                   see ratelimit.Verdict.Result
//	requests_total                    policy, tier, outcome    see ratelimit.Outcome; only allowed and denied have a tier
//	near_limit_total                  policy, tier             see ratelimit.PolicyVerdict.Near
//	busiest_second_requests           seen                     in the last minute, offered and admitted
//	findings                          code                     misconfigurations; RUNBOOK.md has the codes
//	unknown_tier_requests_total       policy                   requests with a tier that Policy.Tiers lacks
//	abandoned_requests_total                                   held requests that were not served
//	bans_total                        policy                   bans by Policy.Ban
//	settlements_total                 result                   late charges and returns: made, failed, dropped
//	settlement_lag_seconds                                     histogram: delay of settlements
//	candidate_divergences_total       policy, live, candidate  requests that a Candidate would decide otherwise
//	decision_duration_seconds         source                   histogram: shared, local, undecided; without bans
//	limit_units                       policy, tier             units of the limit in force
//	limit_window_seconds              policy, tier, limit,     its window, with its text, e.g. "token-bucket 60/1m",
//	                                  mode, capacity           its mode (on, shadow, off), and Policy.Capacity (true, false)
//	tenants                           policy                   with ShareBy: tenants present in this process
//	share_units                       policy                   with ShareBy: share of a tenant of weight 1
//	top_offender_denial_ratio         policy, tier             largest share of one key, of this tier, in the denials
//	denied_keys                       policy                   denied keys, up to 128
//	client_denials                    policy, client           denials of a client of Options.Clients
//	start_time_seconds                                         Unix time of New: the counters count since then
//
// A policy's outcome allowed does not say that the request was served: another policy may have denied it, and then no
// policy has charged it. The gauges of denials are of the last 10 to 20 minutes, and gauges of a policy vanish when
// no open Middleware has it. The limit in force includes overrides of all keys only. Policies of one name add up,
// except that the largest ratio counts. Histograms are native and classic. Other metrics that do not end in _total
// are gauges.
//
// # Metrics of limiters
//
// All have the label limiter, which is ratelimit.Options.LimiterName. Several of one name become memory, memory-2, in
// the order of registration. A limiter needs a method Stats. The metrics vanish when its Middlewares are closed.
//
//	breaker_open                               open circuits, one for each master
//	breaker_trips_total                        openings of circuits
//	instances                                  live instances, after some seconds
//	fallback_local_checks_total                checks decided by this instance alone
//	fallback_passed_checks_total               checks that failed open
//	fallback_refused_calls_total               calls that failed closed
//	fallback_owed_keys                         keys with local charges for Redis
//	fallback_handed_back_units_total           local units received later
//	fallback_lost_units_total                  local units never received
//	fallback_unknown_units                     units that Redis has perhaps charged
//	fallback_kept_returns                      returns that wait for Redis
//	fallback_late_returns_total                returns received late
//	fallback_lost_returns_total                returns whose units may stay charged
//	redis_checks_total                         checks sent to Redis
//	redis_scripts_total                        scripts sent to Redis
//	redis_script_loads_total                   scripts unknown to Redis
//	redis_errors_total                         failures, by reason: shared.Reason
//	redis_round_trip_seconds                   histogram, with late replies and probes
//	redis_excused_round_trips_total            expired because this process was late
//	redis_missing_states_total                 checks without a stored state
//	redis_batch_checks                         histogram: checks in a script
//	views_denied_total                         calls denied by remembered answers
//	views_keys                                 keys with a remembered answer
//	ahead_admitted_total                       calls admitted ahead of Redis
//	ahead_asked_total                          calls that asked instead, by reason: near, allowance, census, busy,
//	                                           unknown_key, trouble
//	ahead_overdrawn_units_total                of these, units that Redis would have denied
//	ahead_unacknowledged_units                 units not yet acknowledged by Redis
//	memory_keys                                keys
//	memory_expired_keys_total                  expired
//	memory_evicted_keys_total                  removed to make room
//	memory_refused_keys_total                  without room
//
// Only shared limiters have the metrics above memory_keys.
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
//	given_up_total                 reason   requests not sent (again): wait, attempts, request, final
package prommetrics
