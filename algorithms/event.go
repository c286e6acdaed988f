package algorithms

// An Event is something that happened inside a limiter and that its operator
// may want to count. Fields that an event does not mention are zero.
type Event struct {
	Kind EventKind
	// Policy is the policy it concerns, if there is one.
	Policy string
	// Err is what went wrong, of EventError, EventReturnFailed and EventOpened.
	Err error
	// Class is that of Err: see [Classify].
	Class ErrorClass
	// Finding is that of EventFinding.
	Finding Finding
}

// classified returns an observer of events with the class of their errors.
func classified(observe func(Event)) func(Event) {
	return func(e Event) {
		e.Class = Classify(e.Err)
		observe(e)
	}
}

// An EventKind says what happened.
type EventKind uint8

const (
	// EventCapacity: a Memory is full of keys that were denied within the last
	// second, and refused a new key of Policy.
	EventCapacity EventKind = iota + 1
	// EventScriptLoaded: Redis did not know the script (it restarted, failed
	// over or flushed its scripts), and was sent it whole.
	EventScriptLoaded
	// EventError: a script failed with Err, or calls that have waited for too long
	// were not sent, once for all the calls in it.
	EventError
	// EventReturnFailed: units could not be given back, and stay charged until
	// they drain: those that a call took in one Cluster slot when it was denied
	// in another, or what was left of a lease, of Policy. Err says why.
	EventReturnFailed
	// EventOpened: the circuit of a [Fallback] has opened, and the primary is
	// not asked. Err is the last failure.
	EventOpened
	// EventClosed: the primary is asked again.
	EventClosed
	// EventFinding: a mistake in how Redis or its client is set up was found for
	// the first time: see [Redis.Findings].
	EventFinding
)

// String returns the kind as a metric's label has it, e.g. "script-loaded".
func (k EventKind) String() string {
	switch k {
	case EventCapacity:
		return "capacity"
	case EventScriptLoaded:
		return "script-loaded"
	case EventError:
		return "error"
	case EventReturnFailed:
		return "return-failed"
	case EventOpened:
		return "opened"
	case EventClosed:
		return "closed"
	case EventFinding:
		return "finding"
	default:
		return "unknown"
	}
}
