/**
 * The guards of tools, hooks, readers, aborts and limits, each taken out.
 */
import type { Mutant } from "./Mutant.ts"

const toolCalls = "test/faults/toolCalls.test.ts"
const hooks = "test/faults/hooks.test.ts"
const abort = "test/faults/abort.slow.test.ts"
const limits = "test/faults/limits.test.ts"
const overflow = "test/faults/overflow.test.ts"

export const mutants: ReadonlyArray<Mutant> = [
  {
    fault: "F073",
    without: "an answer that ends for calls it does not have is no failure",
    file: "src/reply/ReplyWriter.ts",
    from: 'stopReason === "toolUse" && this.calls.length === 0',
    to: 'stopReason === "toolUse" && this.calls.length < 0',
    test: toolCalls
  },
  {
    fault: "F074",
    without: "calls are run only where the answer says that it calls",
    file: "src/internal/turn.ts",
    from: "Exit.isSuccess(asked.exit) && Message.toolCalls(message).length > 0",
    to: 'Exit.isSuccess(asked.exit) && message.stopReason === "toolUse"',
    test: "test/behaviour/Tools.test.ts"
  },
  {
    fault: "F075",
    without: "a made id is the same in each answer",
    file: "src/reply/internal/replyBlocks.ts",
    from: "wireId ?? `call_${this.seed}_${number}`",
    to: "wireId ?? `call_${number}`",
    test: toolCalls
  },
  {
    fault: "F076",
    without: "an id is made to fit in another way each time",
    file: "src/providers/internal/writing.ts",
    from: "digest(id, rule.length)",
    to: "digest(id + Math.random(), rule.length)",
    test: "test/faults/callIds.test.ts"
  },
  {
    fault: "F077",
    without: "however many tools there are, all are named",
    file: "src/ToolRegistry.ts",
    from: 'cut(this.known.join(", "))',
    to: 'this.known.join(", ")',
    test: toolCalls
  },
  {
    fault: "F079",
    without: "however much is wrong, all is told",
    file: "src/ToolRegistry.ts",
    from: "${cut(this.detail)}",
    to: "${this.detail}",
    test: toolCalls
  },
  {
    fault: "F081",
    without: "what is secret by its name is told",
    file: "src/internal/failureText.ts",
    from: "(secret.test(key) ? undefined : value)",
    to: "value",
    test: toolCalls
  },
  {
    fault: "F081",
    without: "what cannot be read is read",
    file: "src/internal/failureText.ts",
    from: 'return "It failed with something that cannot be read"',
    to: "return told(failure)",
    test: toolCalls
  },
  {
    fault: "F082",
    without: "what is no JSON is a success",
    file: "src/internal/toolOutput.ts",
    from: "failure(`The tool returned a value that is not JSON. ${fault}`)",
    to: 'output("")',
    test: toolCalls
  },
  {
    fault: "F086",
    without: "a tool has all the time there is",
    file: "src/internal/toolOutcome.ts",
    from: "const defaultTimeout = Duration.seconds(30)",
    to: "const defaultTimeout = Duration.infinity",
    test: "test/behaviour/VirtualTime.test.ts"
  },
  {
    fault: "F087",
    without: "a tool that does not listen is waited for",
    file: "src/internal/interruption.ts",
    from: "const grace = 100",
    to: "const grace = 3_600_000",
    test: abort
  },
  {
    fault: "F087",
    without: "a promise that goes on is not reported",
    file: "src/Tool.ts",
    from: "detach(reportDeaf(name, () => ended !== undefined))",
    to: "Effect.void",
    test: abort
  },
  {
    fault: "F089",
    without: "a process that ignores SIGTERM is left alone",
    file: "src/tools/ShellTool.ts",
    from: 'forceKillAfter: "400 millis"',
    to: 'forceKillAfter: "400 hours"',
    test: "test/tools/ShellTool.slow.test.ts"
  },
  {
    fault: "F091",
    without: "a guard that fails has agreed",
    file: "src/internal/guards.ts",
    from: "rejected(`A beforeTool hook${quoted(hookName)} failed: ${detail}`)",
    to: "Effect.succeed(_)",
    test: hooks
  },
  {
    fault: "F092",
    without: "a hook has all the time there is",
    file: "src/internal/hookCalls.ts",
    from: "hookTimeout: Duration.seconds(5)",
    to: "hookTimeout: Duration.infinity",
    test: hooks
  },
  {
    fault: "F093",
    without: "nobody looks at what a hook returns",
    file: "src/internal/hookCalls.ts",
    from: "HookOutput.read(Hook.points[point].output, exit.value)",
    to: "Result.succeed(exit.value)",
    test: hooks
  },
  {
    fault: "F093",
    without: "hooks are shown what the run goes on with",
    file: "src/internal/hookCalls.ts",
    from: "hook.run(HookOutput.frozen(input))",
    to: "hook.run(input)",
    test: hooks
  },
  {
    fault: "F094",
    without: "a listener that fails ends the run",
    file: "src/internal/mailbox.ts",
    from: "Effect.catchCause(report)",
    to: "Effect.orDie",
    test: hooks
  },
  {
    fault: "F094",
    without: "a listener is reported at every event",
    file: "src/internal/mailbox.ts",
    from: "if (hasFailed) return Effect.void",
    to: "",
    test: hooks
  },
  {
    fault: "F095",
    without: "the connection of an answer nobody reads is kept",
    file: "src/providers/internal/connection.ts",
    from: "if (!this.isFinishing) return this.close",
    to: "if (!this.isFinishing) return Effect.void",
    test: "test/faults/consumer.slow.test.ts"
  },
  {
    fault: "F096",
    without: "a run goes as far ahead as it likes",
    file: "src/internal/execution.ts",
    from: "const readAhead = 64",
    to: "const readAhead = 1_000_000",
    test: "test/faults/consumer.slow.test.ts"
  },
  {
    fault: "F099",
    without: "a request cannot be interrupted before it is answered",
    file: "src/providers/internal/connection.ts",
    from: "restore(Scope.provide(opened, own))",
    to: "Scope.provide(opened, own)",
    test: abort
  },
  {
    fault: "F101",
    without: "what was said of an aborted answer is thrown away",
    file: "src/ModelEvent.ts",
    from: "content: Object.values(reply.content),",
    to: "content: finish === undefined ? [] : Object.values(reply.content),",
    test: abort
  },
  {
    fault: "F103",
    without: "the wait for a retry is waited out",
    file: "src/resilience/Retry.ts",
    from: "Effect.sleep(delay)",
    to: "Effect.uninterruptible(Effect.sleep(delay))",
    test: abort
  },
  {
    fault: "F105",
    without: "a reader that is cancelled keeps its connection",
    file: "src/providers/internal/connection.ts",
    from: "this.close = Scope.close(scope, Exit.void)",
    to: "this.close = Effect.void",
    test: "test/chaos/aborts.slow.test.ts"
  },
  {
    fault: "F106",
    without: "what was aborted is sent as it is",
    file: "src/internal/request.ts",
    from: "const repaired = Transcript.repair(trimmed.messages)",
    to: "const repaired = trimmed",
    test: abort
  },
  {
    fault: "F116",
    without: "turns are not counted by default",
    file: "src/internal/limitTable.ts",
    from: "maxTurns: { initial: 50,",
    to: "maxTurns: { initial: Infinity,",
    test: "test/behaviour/Limits.test.ts"
  },
  {
    fault: "F117",
    without: "the same calls may be made for ever by default",
    file: "src/internal/limits.ts",
    from: "?? table.maxIdenticalToolCalls.initial",
    to: "?? Infinity",
    test: limits
  },
  {
    fault: "F117",
    without: "only the same call in a row is one too many",
    file: "src/internal/limits.ts",
    from: "const longestCycle = 3",
    to: "const longestCycle = 1",
    test: limits
  },
  {
    fault: "F117",
    without: "the model is told nothing before the end",
    file: "src/internal/limits.ts",
    from: "return isNews && this.warnedIn !== undefined",
    to: "return false",
    test: limits
  },
  {
    fault: "F117",
    without: "the model has had an answer to read the warning in",
    file: "src/internal/limits.ts",
    from: " && !isUnread",
    to: "",
    test: limits
  },
  {
    fault: "F117",
    without: "a model that falls back is warned again",
    file: "src/internal/limits.ts",
    from: "(this.warnedIn ?? turn) : undefined",
    to: "(this.warnedIn ?? turn) : this.warnedIn",
    test: limits
  },
  {
    fault: "F117",
    without: "a limit of three is warned of",
    file: "src/internal/limits.ts",
    from: "const leastToWarn = 3",
    to: "const leastToWarn = 4",
    test: limits
  },
  {
    fault: "F118",
    without: "the cost a provider tells counts before prices",
    file: "src/internal/limits.ts",
    from: "  if (usage.cost !== undefined)\n",
    to: "  if (usage.cost !== undefined && usage.costSource !== undefined)\n",
    test: limits
  },
  {
    fault: "F118",
    without: "an estimate that was replaced is no longer part of the sum",
    file: "src/internal/limits.ts",
    from: "(now.usage.estimated ?? 0) - (before.usage.estimated ?? 0)",
    to: "(now.usage.estimated ?? 0)",
    test: limits
  },
  {
    fault: "F118",
    without: "a request that was stopped is paid for",
    file: "src/internal/reply.ts",
    from: "  Cause.hasInterrupts(cause) || isPaidFor(errorOf(cause))",
    to: "  isPaidFor(errorOf(cause))",
    test: limits
  },
  {
    fault: "F118",
    without: "a request that was reset is paid for",
    file: "src/internal/reply.ts",
    from: '? reason.kind === "reset" :',
    to: "? false :",
    test: limits
  },
  {
    fault: "F118",
    without: "an empty answer is asked for again within the budget",
    file: "src/internal/modelCall.ts",
    from: "  if (spent !== undefined) return yield* spent\n",
    to: "",
    test: limits
  },
  {
    fault: "F118",
    without: "sub-agents spend what nobody counts",
    file: "src/internal/limits.ts",
    from: "this.outer?.replace(before, now)",
    to: "",
    test: limits
  },
  {
    fault: "F118",
    without: "an answer is counted when it is over",
    file: "src/internal/reply.ts",
    from: "this.run.spent.isBounded || events.some(isAboutCall)",
    to: "events.some(isAboutCall)",
    test: limits
  },
  {
    fault: "F118",
    without: "what nobody tells is nothing",
    file: "src/internal/reply.ts",
    from: "const usage = Limits.reported(this.reply.finish?.usage) ?? estimated",
    to: "const usage = Limits.reported(this.reply.finish?.usage)",
    test: limits
  },
  {
    fault: "F119",
    without: "what was made shorter once is made shorter again",
    file: "src/internal/modelCall.ts",
    from: "Effect.catchTag(prepared(reply, shorter)",
    to: "Effect.catchTag(fitted(reply, shorter)",
    test: overflow
  },
  {
    fault: "F119",
    without: "making it shorter is made shorter itself",
    file: "src/internal/compact.ts",
    from: "Effect.provideService(ContextManager, { view: run.contextManager.view })",
    to: "",
    test: overflow
  }
]
