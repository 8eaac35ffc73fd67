/**
 * Compacts the conversation of a run: before a request that nears the context window, after a provider refused a request as too long, and
 * for `agent.compact`.
 *
 * A compaction that fails is an event `Compaction`, and the run continues with the conversation as it is.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Struct from "effect/Struct"
import type { OfTag } from "../AgentEvent.ts"
import { type Compacted, ContextManager, type Plan, type Trigger } from "../ContextManager.ts"
import { type ByHand, compactionFailed, type Entry } from "./compactions.ts"
import { CompactionFailed, type FailureReason } from "./failureReason.ts"
import type * as Hook from "../Hook.ts"
import * as Limits from "./limits.ts"
import { makeId } from "../Message.ts"
import { Provider } from "../Provider.ts"
import { errorOf } from "./reply.ts"
import type { Run } from "./run.ts"
import * as Transcript from "../Transcript.ts"
import type { Usage } from "../Usage.ts"

type CompactionEvent = OfTag<"Compaction">
type Compacting<A> = Effect.Effect<A, FailureReason>

/** Compacts the conversation if the manager finds it due. */
export const ifDue = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, FailureReason> {
  const trigger = { reason: "threshold" } as const
  const plan = yield* planned(run, trigger)
  if (plan === undefined || run.compactions.isTooSoon(plan.tokensBefore)) return
  yield* isCarriedOut(run, trigger, plan)
})

/** Compacts a conversation that a provider refused, because it is or may be too long. Returns whether it did. */
export const afterOverflow = Effect.fnUntraced(function* (
  run: Run,
  trigger: Trigger
): Effect.fn.Return<boolean, FailureReason> {
  if (run.contextManager.compact === undefined) return false
  const plan = yield* planned(run, trigger)
  return plan === undefined ? false : yield* isCarriedOut(run, trigger, plan)
})

/** Carries out a plan, and returns whether that succeeded. Fails if its model calls have reached a limit on tokens or cost. */
const isCarriedOut = (run: Run, trigger: Trigger, plan: Plan): Compacting<boolean> =>
  Effect.as(carriedOut(run, trigger, plan), true).pipe(
    Effect.catchTag("CompactionFailed", () => Effect.succeed(false)),
    Effect.tap(() => run.spent.exceeded ?? Effect.void)
  )

/** Compacts for `agent.compact`, whose instructions `byHand` has. */
export const byHand = Effect.fnUntraced(function* (
  run: Run,
  asked: ByHand
): Effect.fn.Return<void, FailureReason> {
  const { instructions } = asked
  if (run.contextManager.compact === undefined) return yield* new CompactionFailed({ detail: noManager })
  const trigger: Trigger = { reason: "manual", ...(instructions === undefined ? {} : { instructions }) }
  run.offer(new Map(), { ...run.requestParts, tools: yield* run.registry.definitions })
  const plan = yield* planned(run, trigger)
  if (plan !== undefined) asked.made = yield* carriedOut(run, trigger, plan)
})

const noManager =
  "no context manager compacts here. Provide one that does, such as Compaction.layer() of effect-agent/context"

const planned = (run: Run, trigger: Trigger): Effect.Effect<Plan | undefined> => {
  const { asked, compactions, contextManager, messages, options } = run
  const conversation = {
    ...run.conversation,
    measured: compactions.measured(messages),
    request: asked,
    options
  }
  const planning = contextManager.compact?.(conversation, trigger) ?? Effect.undefined
  return run.attempt(Effect.provideService(planning, Provider, run.provider))
}

/** The members of a compaction that later requests need. */
const lasting = ["summary", "firstKept", "summarizesFirst"] as const

/** Carries out a plan between its start and end events, and keeps the summary. Fails if a hook skipped it or if the summary failed. */
const carriedOut = Effect.fnUntraced(function* (
  run: Run,
  trigger: Trigger,
  { summarize, tokensBefore }: Plan
): Effect.fn.Return<Entry, FailureReason> {
  const reason = trigger.reason === "refusal" ? "overflow" : trigger.reason
  const instructions = trigger.reason === "manual" ? trigger.instructions : undefined
  const asked = { reason, tokensBefore, ...(instructions === undefined ? {} : { instructions }) }
  yield* beforeCompaction(run, asked)
  const about = { _tag: "Compaction", reason, tokensBefore } as const
  const startedAt = run.elapsed
  run.emit({ ...about, status: "start" })
  yield* run.mailbox.delivered
  const exit = yield* Effect.exit(
    Effect.flatMap(run.attempt(summarized(run, summarize)), ({ usage, ...made }) => {
      const { tokensAfter } = made
      const entry = { ...Struct.pick(made, lasting), tokensAfter, entryId: makeEntryId(), tokensBefore }
      return Effect.as(kept(run, entry, { reason, ...usageOf(usage) }), { entry, usage })
    })
  )
  if (Exit.isFailure(exit)) {
    const { detail, reason, usage } = failedBy(exit.cause)
    const error = new CompactionFailed({ detail, ...(reason === undefined ? {} : { reason }) })
    if (!run.control.isHalting) run.compactions.fail(tokensBefore)
    run.spent.add(usage, false)
    run.emit({ ...about, status: "failed", error, ...usageOf(usage) })
    yield* run.mailbox.delivered
    return yield* Effect.failCause(exit.cause)
  }
  const { entry, usage } = exit.value
  const { entryId, tokensAfter } = entry
  run.spent.add(usage, false)
  run.emit({ ...about, status: "end", tokensAfter, entryId, ...usageOf(usage) })
  yield* run.mailbox.delivered
  const durationMs = run.elapsed - startedAt
  yield* run.ask("afterCompaction", () => {
    const { compaction, messages } = run.conversation
    const { dropped: summarized } = Transcript.compacted(messages, compaction)
    const made = Struct.pick(entry, ["summary", "firstKept", "entryId", "tokensAfter"])
    return { ...run.turnInput, ...asked, ...made, summarized, durationMs, ...usageOf(usage) }
  })
  return entry
})

/** Asks the `beforeCompaction` hooks. Fails if one skips the compaction. */
const beforeCompaction = Effect.fnUntraced(function* (
  run: Run,
  asked: Omit<Hook.BeforeCompactionInput, keyof Hook.TurnInput>
): Effect.fn.Return<void, FailureReason> {
  let detail: string | undefined
  yield* run.ask(
    "beforeCompaction",
    () => ({ ...run.turnInput, ...asked }),
    ({ reason = "a beforeCompaction hook skipped it", skip }) => {
      if (!skip) return "next"
      detail = reason
      return "stop"
    }
  )
  if (detail !== undefined) return yield* new CompactionFailed({ detail })
})

/** Writes a compaction to the session, then lets later requests of the run and of its agent start from it. */
const kept = (
  run: Run,
  entry: Entry,
  made: Pick<CompactionEvent, "reason" | "usage">
): Effect.Effect<void> => {
  const { compactions, control, journal, messages } = run
  const keep = Effect.sync(() => compactions.keep(Struct.pick(entry, lasting), messages))
  if (journal === undefined) return keep
  return Effect.flatMap(journal.write([{ _tag: "Compacted", ...entry, ...made }]), () => {
    const { failure } = journal
    if (failure === undefined) return keep
    const stop = control.stopWith({ cause: "session", error: failure })
    return Effect.flatMap(stop, () => run.interruptible)
  })
}

/** Makes the summary of a plan. Fails if it would not make requests shorter. */
const summarized = (run: Run, summarize: Plan["summarize"]): Effect.Effect<Compacted, CompactionFailed> =>
  summarize.pipe(
    Effect.mapError(compactionFailed),
    Effect.tap((made) => faultOf(run, made) ?? Effect.void),
    Effect.provideService(Provider, run.provider),
    // `summarize` may run an agent, and that run must not compact too.
    Effect.provideService(ContextManager, { view: run.contextManager.view })
  )

const usageOf = (usage: Usage | undefined): { readonly usage?: Usage } =>
  usage === undefined ? {} : { usage }

const makeEntryId = (): string => `compaction_${makeId().slice("msg_".length)}`

/** The failure of a summary that is empty, or no shorter than the messages in whose place it stands. */
const faultOf = (run: Run, made: Compacted): CompactionFailed | undefined => {
  const { compaction: current, messages } = run.conversation
  const size = (compaction: Transcript.Compaction | undefined) =>
    Limits.sizeOf(Transcript.compacted(messages, compaction).messages)
  const fault = (detail: string) => new CompactionFailed({ detail, ...usageOf(made.usage) })
  if (made.summary.trim() === "") return fault("the summary is empty")
  if (size(made) < size(current)) return undefined
  return fault("the conversation is no shorter with the summary")
}

const failedBy = (cause: Cause.Cause<CompactionFailed>): CompactionFailed => {
  if (Cause.hasInterrupts(cause)) return new CompactionFailed({ detail: "the run was stopped" })
  const error = errorOf(cause)
  return error instanceof CompactionFailed ? error : new CompactionFailed({ detail: error.message })
}
