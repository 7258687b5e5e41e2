"""Shell commands of agents that run through haft, because a hook rewrote them.

    before: the hook asks ─► `ticket`: decide, perhaps approve ─► the rewritten line with a ticket
    then:   the agent runs the line ─► `run`: redeem the ticket, run the command with the streams of the agent's shell

`service.hooked` is the facade, in `calls`. `surfaces/hook` uses it.
"""
