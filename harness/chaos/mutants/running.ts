/** The guards of compactions, agents inside, hand-offs, usage and the journal, each taken out. */
import type { Mutant } from "./Mutant.ts"

export const mutants: ReadonlyArray<Mutant> = [
  {
    fault:
      "that fails is an event, is tried again when the conversation has grown by a tenth, and the run goes on",
    without: "a compaction that failed is tried again only when the conversation has grown",
    file: "src/internal/compact.ts",
    from: "|| run.compactions.isTooSoon(plan.tokensBefore)",
    to: "",
    test: "test/behaviour/Compaction.test.ts"
  },
  {
    fault: "fails with a summary that is empty, or not shorter than what it stands for",
    without: "a summary that is not shorter fails",
    file: "src/internal/compact.ts",
    from: "if (size(made) < size(current)) return undefined",
    to: "return undefined",
    test: "test/behaviour/Compaction.test.ts"
  },
  {
    fault: "fails with a summary that is empty, or not shorter than what it stands for",
    without: "an empty summary fails",
    file: "src/internal/compact.ts",
    from: 'if (made.summary.trim() === "") return fault("the summary is empty")',
    to: "",
    test: "test/behaviour/Compaction.test.ts"
  },
  {
    fault: "asks no further when the summary has spent what the run may spend",
    without: "a compaction that spends the budget ends the run",
    file: "src/internal/compact.ts",
    from: "    Effect.tap(() => run.spent.exceeded ?? Effect.void)\n",
    to: "",
    test: "test/context/compaction.test.ts"
  },
  {
    fault: "that cannot be written ends the run, and the compaction does not hold",
    without: "a compaction that cannot be written does not hold",
    file: "src/internal/compact.ts",
    from: "    if (failure === undefined) return keep\n",
    to: "    return keep\n",
    test: "test/context/session.test.ts"
  },
  {
    fault: "has the compaction before others see its end, and another agent starts from it",
    without: "a compaction is written before others see its end",
    file: "src/internal/compact.ts",
    from: "  if (journal === undefined) return keep\n",
    to: "  return keep\n",
    test: "test/context/session.test.ts"
  },
  {
    fault: "fails with a summary that is empty, or not shorter than what it stands for",
    without: "a compaction that failed is paid for",
    file: "src/internal/compact.ts",
    from: '    run.spent.add(usage, false)\n    run.emit({ ...about, status: "failed"',
    to: '    run.emit({ ...about, status: "failed"',
    test: "test/behaviour/Compaction.test.ts"
  },
  {
    fault: "that succeeds, and one that a cancel ended, keep no later one from being tried",
    without: "a compaction that a cancel ended is tried again",
    file: "src/internal/compact.ts",
    from: "if (!run.control.isHalting) run.compactions.fail(tokensBefore)",
    to: "run.compactions.fail(tokensBefore)",
    test: "test/behaviour/Compaction.test.ts"
  },
  {
    fault: "is not asked for by the run that makes the summary",
    without: "the run that makes a summary does not compact",
    file: "src/internal/compact.ts",
    from: "    Effect.provideService(ContextManager, { view: run.contextManager.view })\n",
    to: "    (self) => self\n",
    test: "test/behaviour/Compaction.test.ts"
  },
  {
    fault: "measures by no answer before a compaction, no answer that it was given, and none that failed",
    without: "an answer before a compaction measures nothing",
    file: "src/internal/compactions.ts",
    from: "if (message === undefined || message.id === this.measuredAfter) return undefined",
    to: "if (message === undefined) return undefined",
    test: "test/behaviour/Compaction.test.ts"
  },
  {
    fault: "is what later runs of the agent start from, until the messages are replaced",
    without: "replaced messages have no compaction",
    file: "src/internal/compactions.ts",
    from: "    this.current = current\n    this.failedAt = undefined",
    to: "    this.failedAt = undefined",
    test: "test/behaviour/Compaction.test.ts"
  },
  {
    fault: "measures by no answer before a compaction, no answer that it was given, and none that failed",
    without: "restored messages are not measured",
    file: "src/internal/compactions.ts",
    from: "    this.measuredAfter = madeAfter?.id\n",
    to: "",
    test: "test/behaviour/Compaction.test.ts"
  },
  {
    fault: "measures by no answer before a compaction, no answer that it was given, and none that failed",
    without: "a failed answer measures nothing",
    file: "src/internal/compactions.ts",
    from: "!Transcript.isFailed(message) && ",
    to: "",
    test: "test/behaviour/Compaction.test.ts"
  },
  {
    fault: "that succeeds, and one that a cancel ended, keep no later one from being tried",
    without: "a compaction that succeeds forgets a failure before it",
    file: "src/internal/compactions.ts",
    from: "{ madeAfter }) }\n    this.failedAt = undefined",
    to: "{ madeAfter }) }",
    test: "test/behaviour/Compaction.test.ts"
  },
  {
    fault: "runs as many calls of a run at a time as `concurrency` allows",
    without: "calls of one run are bounded",
    file: "src/internal/subAgent.ts",
    from: "parent === undefined ? running : permitsOf(parent).withPermit(running)",
    to: "running",
    test: "test/behaviour/SubAgents.test.ts"
  },
  {
    fault: "says that the work of an agent at its limit of turns is not complete",
    without: "an answer at the limit of turns says that it is not complete",
    file: "src/internal/subAgent.ts",
    from: 'status === "incomplete" ?',
    to: "false ?",
    test: "test/behaviour/SubAgents.test.ts"
  },
  {
    fault: "suspends the runs around it, and all of them continue where they stopped",
    without: "an agent inside that was suspended continues",
    file: "src/internal/subAgent.ts",
    from: "  if (kept !== undefined) runtime.open.reopen(kept)\n",
    to: "",
    test: "test/behaviour/SuspendedInside.test.ts"
  },
  {
    fault: "of an agent inside that then failed are not those of a later call with the same id",
    without: "an agent inside that was resumed is not resumed again",
    file: "src/internal/subAgent.ts",
    from: "  parent?.waiting.inner.delete(toolCallId)\n",
    to: "",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "a call that a hook has run again begins anew, with a session too",
    without: "a call that runs again begins anew",
    file: "src/internal/subAgent.ts",
    from: "before.length + runtime.current.messages.length > 0",
    to: "before.length > 0",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "runs as many calls of a run at a time as `concurrency` allows",
    without: "calls of one run share their permits",
    file: "src/internal/subAgent.ts",
    from: "permits.set(parent, found)",
    to: "",
    test: "test/behaviour/SubAgents.test.ts"
  },
  {
    fault: "hands off once in a turn, and to agents that exist",
    without: "the first hand-off of a turn counts",
    file: "src/internal/team.ts",
    from: "if (this.pending !== undefined) return",
    to: "if (false) return",
    test: "test/behaviour/HandOffs.test.ts"
  },
  {
    fault: "hands off to no agent that the conversation is with",
    without: "an agent does not hand off to itself",
    file: "src/internal/team.ts",
    from: "if (to === this.active) return",
    to: "if (false) return",
    test: "test/behaviour/HandOffs.test.ts"
  },
  {
    fault: "wait beside a hand-off for the tools of the agent that called them, in one process",
    without: "a turn that stays open hands nothing over",
    file: "src/internal/turn.ts",
    from: "if (isSuspended) run.team.forget()\n  else run.handOver()",
    to: "run.handOver()",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "wait beside a hand-off for the tools of the agent that called them, in one process",
    without: "a turn that is resumed hands over as its calls requested",
    file: "src/internal/batch.ts",
    from: 'if (end?.outcome === "success") this.run.team.requestAgain(call, end.output)',
    to: "",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "keeps the limits of the run, and ends a run of hand-offs without end",
    without: "the limits of a run stay after a hand-off",
    file: "src/internal/team.ts",
    from: "return limits === undefined ? own : { ...own, limits }",
    to: "return own",
    test: "test/behaviour/HandOffs.test.ts"
  },
  {
    fault: "returns to an agent with the options that the application has changed",
    without: "an agent returns with its changed options",
    file: "src/internal/team.ts",
    from: "if (member !== undefined) this.members.set(name, { ...member, options })",
    to: "",
    test: "test/behaviour/HandOffs.test.ts"
  },
  {
    fault: "shows the other agent what `history` leaves of the messages before, and keeps the transcript",
    without: "an agent sees the history that its hand-off chooses",
    file: "src/internal/team.ts",
    from: "if (history === undefined) return messages",
    to: "return messages",
    test: "test/behaviour/HandOffs.test.ts"
  },
  {
    fault: "calls the hooks of the agent that the conversation is with",
    without: "an agent of a name is made once",
    file: "src/internal/openAgent.ts",
    from: "  if (members.has(name)) return\n",
    to: "",
    test: "test/behaviour/HandOffs.test.ts"
  },
  {
    fault: "counts the usage of the run inside in the run that calls, and says which part it is",
    without: "the run around counts the usage of a run inside",
    file: "src/internal/limits.ts",
    from: "    if (isOfTurn) this.turn = plus(this.turn, spent, false)\n    this.parent?.addInside(spent)",
    to: "    if (isOfTurn) this.turn = plus(this.turn, spent, false)",
    test: "test/behaviour/SubAgents.test.ts"
  },
  {
    fault: "counts the usage of a run inside of a run inside in both runs around it, at their prices",
    without: "all runs around count the usage of a run inside",
    file: "src/internal/limits.ts",
    from: "    else this.turn = plus(this.turn, counted, true)\n    this.parent?.addInside(spent)",
    to: "    else this.turn = plus(this.turn, counted, true)",
    test: "test/behaviour/SubAgents.test.ts"
  },
  {
    fault: "is computed for the provider and the model that answer, and marked",
    without: "a turn begins without usage",
    file: "src/internal/limits.ts",
    from: "    this.turn = this.carried\n",
    to: "",
    test: "test/behaviour/Cost.test.ts"
  },
  {
    fault: "counts the usage of a run inside of a run inside in both runs around it, at their prices",
    without: "usage of a run inside has the prices of the run around",
    file: "src/internal/limits.ts",
    from: "const counted = priced(spent, this.limits?.prices, undefined)",
    to: "const counted = spent",
    test: "test/behaviour/SubAgents.test.ts"
  },
  {
    fault: "before a request puts a summary in place of older messages, and the transcript stays",
    without: "compactions count in no turn",
    file: "src/internal/limits.ts",
    from: "if (isOfTurn) this.turn",
    to: "this.turn",
    test: "test/behaviour/Compaction.test.ts"
  },
  {
    fault: "fails a run whose events cannot be written, and writes them with the next one",
    without: "records whose write failed are written with the next ones",
    file: "src/internal/journal.ts",
    from: "this.unwritten = [...this.unwritten, ...records]",
    to: "this.unwritten = [...records]",
    test: "test/behaviour/Session.test.ts"
  },
  {
    fault: "writes the events of a run in order",
    without: "a record is written once",
    file: "src/internal/journal.ts",
    from: "this.unwritten = this.unwritten.slice(records.length)",
    to: "",
    test: "test/behaviour/Session.test.ts"
  },
  {
    fault: "fails a run whose events cannot be written, and writes them with the next one",
    without: "a write that succeeds forgets a failure before it",
    file: "src/internal/journal.ts",
    from: "        this.failure = undefined\n",
    to: "",
    test: "test/behaviour/Session.test.ts"
  },
  {
    fault: "keeps the run inside in the session of its call",
    without: "events of runs inside stay out of the session",
    file: "src/internal/journal.ts",
    from: "(event.runId === runId || requests.has(event._tag))",
    to: "true",
    test: "test/behaviour/SubAgents.test.ts"
  },
  {
    fault: "writes each record once, by one writer at a time, which no interruption cuts",
    without: "one writer at a time",
    file: "src/internal/journal.ts",
    from: "this.writer.withPermit(Effect.suspend(() => this.writeAll(events)))",
    to: "Effect.suspend(() => this.writeAll(events))",
    test: "test/behaviour/Session.test.ts"
  },
  {
    fault: "writes each record once, by one writer at a time, which no interruption cuts",
    without: "no interruption cuts a write",
    file: "src/internal/journal.ts",
    from: "return Effect.uninterruptible(this.writer",
    to: "return (this.writer",
    test: "test/behaviour/Session.test.ts"
  },
  {
    fault: "shows an event only when it is written",
    without: "an event is written before others see it",
    file: "src/internal/mailbox.ts",
    from: '        if (journal !== undefined && this.written === 0) yield* this.write(journal)\n        const [event] = this.undelivered\n        if (event === undefined) break\n        const isDelta = event._tag === "MessageDelta" || event._tag === "PartialValue"\n        this.observe([event], isDelta)\n        if (subscriptions !== undefined)\n          // One of them may unsubscribe another.\n          for (const subscriber of subscriptions.subscribers)\n            if (subscriptions.subscribers.includes(subscriber)) yield* this.deliver(subscriber, event)',
    to: '        const [event] = this.undelivered\n        if (event === undefined) break\n        const isDelta = event._tag === "MessageDelta" || event._tag === "PartialValue"\n        this.observe([event], isDelta)\n        if (subscriptions !== undefined)\n          // One of them may unsubscribe another.\n          for (const subscriber of subscriptions.subscribers)\n            if (subscriptions.subscribers.includes(subscriber)) yield* this.deliver(subscriber, event)\n        if (journal !== undefined && this.written === 0) yield* this.write(journal)',
    test: "test/behaviour/Session.test.ts"
  },
  {
    fault: "fails a run whose events cannot be written, and writes them with the next one",
    without: "a failed write stops the run",
    file: "src/internal/mailbox.ts",
    from: 'return control.stopWith({ cause: "session", error: failure })',
    to: "return Effect.void",
    test: "test/behaviour/Session.test.ts"
  },
  {
    fault: "fails a run whose end cannot be written",
    without: "a run whose end cannot be written has failed",
    file: "src/internal/mailbox.ts",
    from: 'this.undelivered[this.written - 1] = { ...last, status: "failed", error: failure }',
    to: "{}",
    test: "test/behaviour/Session.test.ts"
  },
  {
    fault: "loses none and repeats no end, at whatever write its process ends",
    without: "a call in the background that is once does not run again",
    file: "src/internal/toolCall.ts",
    from: "const mayRun = params === undefined || run.mayRunAgain(call)",
    to: "const mayRun = true",
    test: "test/server/BackgroundKills.slow.test.ts"
  },
  {
    fault: "whose results tell the ends",
    without: "no message repeats an end that the model has read",
    file: "src/internal/background.ts",
    from: "return ended.filter(({ handle }) => !reported.has(handle))",
    to: "return ended.filter(({ handle }) => !reported.has(`${handle}?`))",
    test: "test/behaviour/Background.test.ts"
  }
]
