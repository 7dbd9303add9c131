"""The way of an agent without network to its model, and to nothing else.

In the vally process a relay listens on a socket in a directory of the trial (`relays`, `relay`, `connection`) and
passes requests on to one provider, with its key (`upstream`, `targets`, `credentials`). Where the agent runs, a
forwarder leads from a loopback port to that socket (`forwarding`). The agent is told the port and, in the place of the
key, a token of the trial.
"""
