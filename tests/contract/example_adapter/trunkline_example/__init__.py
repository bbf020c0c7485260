"""An adapter that lives outside of Trunkline's tree, for an agent that repeats what it hears: `cat`."""
