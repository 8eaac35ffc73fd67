/** The guards of approvals, questions and open turns, each taken out. */
import type { Mutant } from "./Mutant.ts"

export const mutants: ReadonlyArray<Mutant> = [
  {
    fault: "is asked about again if the process ends while the call runs again",
    without: "an answer about a call whose end is not known is for one time",
    file: "src/sessions/internal/Turn.ts",
    from: "if (isOfCall && request.about !== undefined) found.delete(id)",
    to: "",
    test: "test/server/UnknownEnd.test.ts"
  },
  {
    fault: "stays unknown if the run is cancelled before the answer",
    without: "a call that began before and does not begin again stays unknown",
    file: "src/internal/toolCall.ts",
    from: "batch.isLost(call) ? ToolOutcome.unknown(call) : outcome",
    to: "outcome",
    test: "test/server/UnknownEnd.test.ts"
  },
  {
    fault: "rejects params that were changed after the approval",
    without: "an approval from a store is for the params of its hash",
    file: "src/internal/consent.ts",
    from: "if (!isBound) return",
    to: "if (false) return",
    test: "test/behaviour/Suspended.test.ts"
  },
  {
    fault: "expires where the time of the approval is over when it is resumed",
    without: "a request that is over expires",
    file: "src/internal/consent.ts",
    from: "if (run.clock.currentTimeMillisUnsafe() >= expiresAt) return expired",
    to: "",
    test: "test/behaviour/Suspended.test.ts"
  },
  {
    fault: "expire where the policy limits their time",
    without: "a wait ends when its request expires",
    file: "src/internal/consent.ts",
    from: "const until = left === Infinity ? undefined : Effect.sleep(Math.max(0, left))",
    to: "const until = undefined",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "use no time limit: not of the tool, the run, or a run around it",
    without: "a run stands still while a person decides",
    file: "src/internal/consent.ts",
    from: "return stopwatch.held(attempt(waiting, { control: run.control, until }))",
    to: "return attempt(waiting, { control: run.control, until })",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "reads decoded params in predicates, and rejects where one throws",
    without: "a policy that fails rejects",
    file: "src/internal/consent.ts",
    from: "return ToolOutcome.rejected(`the approval policy failed: ${fault}`)",
    to: 'return { _tag: "Decided", given: { decision: "allow" } } as const',
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "which is no decision",
    without: "what is no decision allows nothing",
    file: "src/internal/consent.ts",
    from: "Exit.isSuccess(exit) && isDecision(exit.value)",
    to: "Exit.isSuccess(exit)",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "asks the policy again about a call without an answer",
    without: "a denied call does not run",
    file: "src/internal/consent.ts",
    from: 'if (given.decision === "deny") return',
    to: "if (false) return",
    test: "test/behaviour/Suspended.test.ts"
  },
  {
    fault: "reject the call where the person throws",
    without: "a person that throws rejects the call",
    file: "src/internal/consent.ts",
    from: "[Effect.suspend(() => ask(asked))]",
    to: "[ask(asked)]",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "are rejected inside of a tool whose run could not be resumed",
    without: "no run waits that no run could resume",
    file: "src/internal/waiting.ts",
    from: '!(asked === "defer" && this.isInner)',
    to: "true",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "reach subscribers before the person who is asked at once",
    without: "the request is published before the wait",
    file: "src/internal/consent.ts",
    from: "    return mailbox.delivered\n",
    to: "    return Effect.void\n",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "stand between ToolExecutionStart and ToolInvoked, with the hash of the params",
    without: "an answer is for the params that it names",
    file: "src/internal/requests.ts",
    from: "if (argumentsHash !== request.argumentsHash)",
    to: "if (false)",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "stand between ToolExecutionStart and ToolInvoked, with the hash of the params",
    without: "the first answer counts",
    file: "src/internal/requests.ts",
    from: "if (this.answer !== undefined) return",
    to: "if (false) return",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "that expire while the params of an answer are decoded take no answer",
    without: "an expired request takes no answer",
    file: "src/internal/requests.ts",
    from: "answer === undefined && isExpired ? new",
    to: "false ? new",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "refuse another hash, unknown ids and params that the tool does not take, and stay open",
    without: "params that the tool does not take are refused",
    file: "src/internal/requests.ts",
    from: "yield* Effect.mapError(this.check(params), invalid(id))",
    to: "{}",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "wait for an answer that matches the schema of the model",
    without: "an answer matches the schema of its question",
    file: "src/internal/requests.ts",
    from: "return Result.isFailure(decoded)",
    to: "return false",
    test: "test/behaviour/Questions.test.ts"
  },
  {
    fault: "wait for an answer that matches the schema of the model",
    without: "a question has one answer",
    file: "src/internal/requests.ts",
    from: "isSame ? Effect",
    to: "true ? Effect",
    test: "test/behaviour/Questions.test.ts"
  },
  {
    fault: "that expire while the params of an answer are decoded take no answer",
    without: "a request that expired while params were checked takes no answer",
    file: "src/internal/requests.ts",
    from: "      yield* isOpen\n",
    to: "",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "keep the latest answers for a caller who answers once more, and no others",
    without: "kept answers are bounded",
    file: "src/internal/requests.ts",
    from: "for (const [id] of answered.slice(0, Math.max(0, answered.length - kept))) this.byId.delete(id)",
    to: "",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "of an agent inside take params in place of theirs after a restart",
    without: "agents inside check their own params",
    file: "src/internal/requests.ts",
    from: "path === undefined ? checkOf(registry, turn.message, toolCallId) : undefined",
    to: "checkOf(registry, turn.message, toolCallId)",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "has an answer written when the caller that gave it continues, and when a subscriber gives it",
    without: "an answer is written",
    file: "src/internal/requests.ts",
    from: "yield* record(this.shown(answer))",
    to: 'if ("questionId" in this.request) yield* record(this.shown(answer))',
    test: "test/behaviour/Session.test.ts"
  },
  {
    fault: "that are questions keep an answer that was given before a restart",
    without: "an answer to a question is written",
    file: "src/internal/requests.ts",
    from: "yield* record(this.shown(answer))",
    to: 'if ("approvalId" in this.request) yield* record(this.shown(answer))',
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "is closed by a new prompt, honestly",
    without: "requests of a closed turn are withdrawn",
    file: "src/internal/waiting.ts",
    from: "      this.withdraw({ open: this.current, inner: this.inner })",
    to: "      {}",
    test: "test/behaviour/Suspended.test.ts"
  },
  {
    fault: "is closed by a new prompt, and its request with it",
    without: "requests of agents inside are withdrawn",
    file: "src/internal/waiting.ts",
    from: "for (const suspended of inner.values()) this.withdraw(suspended)",
    to: "",
    test: "test/behaviour/SuspendedInside.test.ts"
  },
  {
    fault: "is closed by a new prompt, honestly",
    without: "answers count when a turn is closed",
    file: "src/internal/waiting.ts",
    from: "closing(this.requests.restore(this.current, this.registry()), messages, now)",
    to: "closing(this.current, messages, now)",
    test: "test/behaviour/Suspended.test.ts"
  },
  {
    fault: "of an agent inside are gone with their turn, also for a call with the same id",
    without: "agents inside do not outlive the turn",
    file: "src/internal/waiting.ts",
    from: "if (turn === undefined) this.inner.clear()",
    to: "",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "ends once the calls beside the waiting one have ended, and continues where it stopped",
    without: "a finished call keeps its result",
    file: "src/internal/batch.ts",
    from: "if (end !== undefined) this.outcomes.set(call, ToolOutcome.make(end.outcome, end.output))",
    to: "",
    test: "test/behaviour/Suspended.test.ts"
  },
  {
    fault: "does not suspend when it is cancelled meanwhile",
    without: "a cancelled run does not suspend",
    file: "src/internal/batch.ts",
    from: "control.isHalting || this.fatal",
    to: "this.fatal",
    test: "test/behaviour/Suspended.test.ts"
  },
  {
    fault: "resumes after a crash: ended, unknown and not begun calls get honest results",
    without: "a call that began before a crash does not run again",
    file: "src/internal/batch.ts",
    from: "return begunBefore === undefined || !mayRunAgain",
    to: "return false",
    test: "test/behaviour/Suspended.test.ts"
  },
  {
    fault: "resumes after a crash: ended, unknown and not begun calls get honest results",
    without: "a call without approval does not run after a crash",
    file: "src/internal/batch.ts",
    from: "return earlier !== undefined && !earlier.isSuspended && begunBefore === undefined",
    to: "return false",
    test: "test/behaviour/Suspended.test.ts"
  },
  {
    fault: "wait for an answer while the calls beside them run, and stand open together",
    without: "no permit is held while a call waits",
    file: "src/internal/turn.ts",
    from: 'batch, call, places), "unbounded")',
    to: "batch, call, places), concurrencyOf(batch))",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "leave room for as many calls as toolConcurrency allows, once they are approved",
    without: "approved calls take places",
    file: "src/internal/toolCall.ts",
    from: "yield* places.withPermits(1)(perform(batch, consent))",
    to: "yield* perform(batch, consent)",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "suspends the runs around it, and all of them continue where they stopped",
    without: "a run inside of a run that can be resumed can wait",
    file: "src/internal/waiting.ts",
    from: "this.isInner = outer !== undefined && parent?.waiting.isResumable !== true",
    to: "this.isInner = outer !== undefined",
    test: "test/behaviour/SuspendedInside.test.ts"
  },
  {
    fault: "use no time limit: not of the tool, the run, or a run around it",
    without: "requests are those of the outermost agent",
    file: "src/internal/waiting.ts",
    from: "outer === undefined ? spec.requests : outer.waiting.requests",
    to: "spec.requests",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "use no time limit: not of the tool, the run, or a run around it",
    without: "time limits of calls around stand still",
    file: "src/internal/waiting.ts",
    from: "new Stopwatch(this.clock, outer?.waiting.stopwatchOf(call), ",
    to: "new Stopwatch(this.clock, undefined, ",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "use no time limit: not of the tool, the run, or a run around it",
    without: "the limit of the tool stands still",
    file: "src/internal/waiting.ts",
    from: "return this.stopwatches.get(toolCallId) ?? this.stopwatch",
    to: "return this.stopwatch",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "use no time limit: not of the tool, the run, or a run around it",
    without: "the time of the runs around stands still",
    file: "src/internal/limits.ts",
    from: "    this.outer?.stop()\n",
    to: "",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "stop the time of a run until all of them have answers",
    without: "two questions hold it until both are answered",
    file: "src/internal/limits.ts",
    from: "if (--this.holds > 0) return",
    to: "this.holds = 0",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "use no time limit: not of the tool, the run, or a run around it",
    without: "time that stood is taken off",
    file: "src/internal/limits.ts",
    from: "this.stood += monotonicMillis(this.clock) - this.stoppedAt",
    to: "",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "let limits count before and after",
    without: "elapsed",
    file: "src/internal/limits.ts",
    from: "this.elapsed < millis ? again : Effect.void",
    to: "Effect.void",
    test: "test/behaviour/Approvals.test.ts"
  },
  {
    fault: "is closed by a new prompt, honestly",
    without: "a call that ended keeps its result when closed",
    file: "src/internal/waiting.ts",
    from: "if (ended !== undefined) return ended",
    to: "",
    test: "test/behaviour/Suspended.test.ts"
  },
  {
    fault: "looks at the calls behind the waiting one only when it is resumed, in a sequential batch",
    without: "results that stand are not given twice",
    file: "src/internal/waiting.ts",
    from: "return Message.toolCalls(message).filter(({ id }) => !ids.has(id))",
    to: "return Message.toolCalls(message)",
    test: "test/behaviour/Suspended.test.ts"
  },
  {
    fault: "wait although a call of an earlier turn had the same id",
    without: "a result of an earlier turn is none of this",
    file: "src/internal/waiting.ts",
    from: ".slice(messages.findLastIndex((message) => message.id === id) + 1)",
    to: "",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "of an agent inside are closed by a new prompt, in words that are true",
    without: "a call that had begun has an unknown end",
    file: "src/internal/waiting.ts",
    from: "if (open.begun.includes(call.id))",
    to: "if (false)",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "that were rejected say so when a new prompt closes their turn",
    without: "a rejection is told",
    file: "src/internal/toolOutcome.ts",
    from: 'answer.decision === "reject" ? notApproved(answer.reason) : undefined',
    to: "undefined",
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "asks, lets edits run, refuses changes, or asks about nothing",
    without: "plan mode refuses calls that may change something",
    file: "src/cli/terminal/Requests.ts",
    from: 'if (mode === "plan" && !isHarmless) return { decision: "deny", reason: Mode.refusal }',
    to: "",
    test: "test/cli/Modes.test.ts"
  },
  {
    fault: "gives the model the tools that change nothing, and the one for the plan",
    without: "requests of plan mode have no other tools",
    file: "src/cli/agent/Mode.ts",
    from: 'tool === undefined || changesNothing(name, tool.effect === "pure")',
    to: "true",
    test: "test/cli/Modes.test.ts"
  },
  {
    fault: "and the run is cancelled",
    without: "a plan that is not wanted ends the run",
    file: "src/cli/agent/PlanTool.ts",
    from: "proposed.some(isDeclined)",
    to: "false",
    test: "test/cli/Modes.test.ts"
  },
  {
    fault: "is empty once it is cleared",
    without: "a person clears the task list for the session",
    file: "src/cli/agent/TaskList.ts",
    from: 'if (entry.type === "custom" && entry.kind === name) return listIn(list, entry.data)',
    to: "",
    test: "test/cli/TaskList.test.ts"
  }
]
