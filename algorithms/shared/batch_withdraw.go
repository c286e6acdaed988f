package algorithms

import "fmt"

// What has become of a batch. A client that cannot connect goes on trying when
// the timeout has passed, and its error would come too late to say that nothing
// was sent. So the client takes the name of a script only when it writes the
// command, and until then the batch can be withdrawn.
const (
	held      uint32 = iota // no script has been taken
	taken                   // one may have been sent
	withdrawn               // none has been, nor will be
)

// withdraw keeps the batch from being sent, and reports whether it did: then
// nothing was executed.
func (b *batch) withdraw() bool { return b.state.CompareAndSwap(held, withdrawn) }

// resume makes a batch of which nothing was executed one that was not taken.
func (b *batch) resume() { b.state.CompareAndSwap(taken, held) }

// A scriptName is the digest or the source of a script, as an argument of a
// command. Whoever reads it may send it.
type scriptName struct {
	batch *batch
	text  []byte
}

// MarshalBinary is called by go-redis when it writes the command. One that was
// withdrawn is written without a name: Redis knows no such script, and what
// others have written to the connection, or will, is not harmed.
func (n *scriptName) MarshalBinary() ([]byte, error) {
	if n.batch.state.CompareAndSwap(held, taken) || n.batch.state.Load() == taken {
		return n.text, nil
	}
	return nil, nil
}

// String is for those who write commands, or trace them, as text.
func (n *scriptName) String() string {
	text, _ := n.MarshalBinary()
	return string(text)
}

// unsent returns the error of a command that was withdrawn, with why the client
// had not sent it.
func unsent(cause error) error {
	if cause == nil {
		return errUnsent
	}
	return fmt.Errorf("%w: %w", errUnsent, cause)
}
