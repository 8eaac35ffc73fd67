/**
 * Prompts at a server: each begins a run there, which this client follows.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import type { AgentEvent } from "../../AgentEvent.ts"
import type * as Payload from "../../api/Payload.ts"
import type { RunResult } from "../../Run.ts"
import type { CannotBegin, RunError } from "../ClientError.ts"
import * as Link from "./Link.ts"
import type { Opened } from "./Following.ts"
import type { PromptOptions, RemoteRun } from "../RemoteAgent.ts"
import * as RunEvents from "./RunEvents.ts"
import { RunRecord } from "./RunRecord.ts"

/** The longest wait for the end of a run after its prompt was interrupted. */
const patience = "5 seconds"

const bodyOf = (prompt: Payload.Prompt, given: PromptOptions): Payload.StartRun => {
  const options = Struct.omit(given, ["cancelOnInterrupt", "key", "replaces", "when"])
  return {
    prompt,
    ...(Object.keys(options).length === 0 ? {} : { options }),
    ...(given.when === undefined ? {} : { when: given.when }),
    ...(given.replaces === undefined ? {} : { replaces: given.replaces })
  }
}

const begin = Effect.fnUntraced(function* (
  { link, sessionId }: Opened,
  input: Payload.Prompt,
  options: PromptOptions
): Effect.fn.Return<Payload.Started | Payload.Joined, CannotBegin> {
  const key = options.key ?? (yield* Link.makeKey)
  const payload = bodyOf(input, options)
  const headers = { "idempotency-key": key }
  return yield* Link.repeated(link, link.api.runs.start({ params: { sessionId }, headers, payload }))
})

const cancel = ({ link }: Opened, runId: string, reason?: string) => {
  const payload = reason === undefined ? {} : { reason }
  const request = Link.once((once) =>
    Link.repeated(link, link.api.control.cancel({ params: { runId }, payload, ...once }))
  )
  return Effect.catchTags(request, {
    RunOver: () => Effect.void,
    RunNotReady: () => Effect.void
  })
}

/** Cancels what a prompt began when it is interrupted, also one whose response is still to come. */
const cancelling = (
  opened: Opened,
  begun: Fiber.Fiber<Payload.Started | Payload.Joined, CannotBegin>,
  { cancelOnInterrupt = true, replaces }: PromptOptions
): Effect.Effect<void> => {
  const stop = Effect.gen(function* () {
    const { runId, status } = yield* Fiber.join(begun)
    if (status === "joined") return
    yield* cancel(opened, runId, "interrupted")
    opened.following.follow(runId, replaces)
    yield* opened.following.outcome(runId)
  })
  return cancelOnInterrupt ? Effect.ignore(Effect.timeout(Effect.interruptible(stop), patience)) : Effect.void
}

/** Begins a run and uses it. An interruption of the use cancels the run. */
const using = <A, E>(
  opened: Opened,
  input: Payload.Prompt,
  options: PromptOptions,
  use: (runId: string) => Effect.Effect<A, E>
): Effect.Effect<A, E | CannotBegin> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const begun = yield* Effect.forkIn(Effect.interruptible(begin(opened, input, options)), opened.scope)
      const used = Effect.flatMap(Fiber.join(begun), ({ runId }) => {
        opened.following.follow(runId, options.replaces)
        return use(runId)
      })
      return yield* Effect.onInterrupt(restore(used), () => cancelling(opened, begun, options))
    })
  )

export const prompt = (
  opened: Opened,
  input: Payload.Prompt,
  options: PromptOptions = {}
): Effect.Effect<RunResult, RunError | CannotBegin> =>
  using(opened, input, options, (runId) => opened.following.outcome(runId))

export const start = (
  opened: Opened,
  input: Payload.Prompt,
  options: PromptOptions = {}
): Effect.Effect<RemoteRun, CannotBegin> =>
  Effect.map(begin(opened, input, options), ({ runId, status }) => {
    opened.following.follow(runId, options.replaces)
    return {
      runId,
      status,
      result: opened.following.outcome(runId),
      cancel: (reason) => cancel(opened, runId, reason)
    }
  })

export const stream = (
  opened: Opened,
  input: Payload.Prompt,
  options: PromptOptions = {}
): Stream.Stream<AgentEvent, RunError | CannotBegin> =>
  Stream.unwrap(
    Effect.gen(function* () {
      let isOver = false
      const begun = yield* Effect.forkIn(begin(opened, input, options), opened.scope)
      yield* Effect.addFinalizer(() => (isOver ? Effect.void : cancelling(opened, begun, options)))
      const { runId } = yield* Effect.onError(Fiber.join(begun), () =>
        Effect.sync(() => {
          isOver = begun.pollUnsafe() !== undefined
        })
      )
      opened.following.follow(runId, options.replaces)
      const record = new RunRecord(runId)
      const events = Stream.map(RunEvents.watch(opened.link, runId), ({ event }) => {
        record.add(event)
        return event
      })
      const ended = Effect.andThen(
        Effect.sync(() => {
          isOver = true
        }),
        record.outcome
      )
      return Stream.concat(events, Stream.drain(Stream.fromEffect(ended)))
    })
  )
