/** Prompts and answers on stdin, a JSON object on each line: `--input-format stream-json`. */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import * as Approval from "../../Approval.ts"
import type { Agent } from "../../Agent.ts"
import type { AgentEvent } from "../../AgentEvent.ts"
import type * as Message from "../../Message.ts"
import type { UsageError } from "../ExitCode.ts"
import * as Inert from "./Inert.ts"
import { Screen } from "./Screen.ts"
import { Signals } from "../Signals.ts"

const Line = Schema.Union([
  Schema.Struct({ type: Schema.Literal("prompt"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("followUp"), text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("steer"),
    text: Schema.String,
    interrupt: Schema.optionalKey(Schema.Boolean)
  }),
  Schema.Struct({ type: Schema.Literal("approve"), approvalId: Schema.String, ...Approval.Reply.fields }),
  Schema.Struct({ type: Schema.Literal("answer"), questionId: Schema.String, answer: Schema.Json }),
  Schema.Struct({ type: Schema.Literal("cancel"), reason: Schema.optionalKey(Schema.String) })
])
type Line = typeof Line.Type

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Line))

/** Plays a run, and returns whether it ended without a failure. */
type Play = (events: Stream.Stream<AgentEvent, unknown>) => Effect.Effect<boolean, UsageError>

/** The beginning of a conversation. */
export interface Beginning {
  /** The prompt of the command line, if any. */
  readonly first: Message.Input | undefined
  /** Whether lines without a prompt continue the session. */
  readonly isResumed: boolean
  /** Whether the last run of that session is suspended. */
  readonly isSuspended: boolean
}

/**
 * Plays a run for each prompt, one after the other, until stdin ends. Runs `onEnd` then. A suspended run continues when all its requests
 * have answers, and a session that is resumed at the end of lines without a prompt. Returns the number of bad lines.
 */
export const follow = Effect.fnUntraced(function* (
  agent: Agent<object>,
  play: Play,
  { first, isResumed, isSuspended }: Beginning,
  onEnd: Effect.Effect<unknown>
) {
  const inputs = yield* Queue.unbounded<Input, Cause.Done>()
  const state = yield* initial(isResumed && isSuspended)
  const offer = (input: Input) => {
    state.waiting++
    state.isBegun = true
    return Queue.offer(inputs, input)
  }
  const proceed = Effect.flatMap(isReady(agent, state), (ready) =>
    ready && state.waiting === 0 ? offer(undefined) : Effect.void
  )
  yield* first === undefined ? proceed : offer(first)
  const atEnd = Effect.suspend(() => (isResumed && !state.isBegun ? offer(undefined) : Effect.void))
  const lines = Effect.andThen(
    Effect.andThen(
      read((line) => obey(line, agent, state, { offer, proceed }), state),
      atEnd
    ),
    onEnd
  )
  yield* Effect.forkScoped(Effect.andThen(lines, Queue.end(inputs)))
  const { ending } = yield* Signals
  const stop = Effect.suspend(() => {
    state.isStopped = true
    return Queue.end(inputs)
  })
  yield* Effect.forkScoped(Effect.andThen(ending, stop))
  yield* Stream.runForEach(Stream.fromQueue(inputs), (input) =>
    state.isStopped ? Effect.void : Effect.andThen(playAll(agent, play, input, state), proceed)
  )
  return state.faults
})

/** A prompt, or `undefined` for what is open in the session. */
type Input = Message.Input | undefined

interface State {
  /** The number of inputs whose runs have not ended. */
  waiting: number
  faults: number
  /** Whether there was an input. */
  isBegun: boolean
  /** Whether the last run is suspended. */
  isSuspended: boolean
  /** Whether the program comes to its end before the lines do. */
  isStopped: boolean
  /** Open during a run. */
  readonly begun: Latch.Latch
}

const initial = (isSuspended: boolean): Effect.Effect<State> =>
  Effect.map(Latch.make(), (begun) => ({
    waiting: 0,
    faults: 0,
    isBegun: false,
    isSuspended,
    isStopped: false,
    begun
  }))

interface Next {
  /** Plays a run of this input. */
  readonly offer: (input: Input) => Effect.Effect<unknown>
  /** Continues the suspended run, if all its requests have answers. */
  readonly proceed: Effect.Effect<unknown>
}

const obey = (
  line: Line,
  agent: Agent<object>,
  state: State,
  { offer, proceed }: Next
): Effect.Effect<unknown, { readonly message: string }> => {
  switch (line.type) {
    case "prompt":
      return offer(line.text)
    case "approve":
      return Effect.andThen(agent.answer(line.approvalId, Struct.omit(line, ["type", "approvalId"])), proceed)
    case "answer":
      return Effect.andThen(agent.answer(line.questionId, { answer: line.answer }), proceed)
  }
  if (state.waiting === 0) return line.type === "cancel" ? Effect.void : offer(line.text)
  return Effect.andThen(state.begun.await, toRun(line, agent))
}

const toRun = (
  line: Extract<Line, { readonly type: "steer" | "followUp" | "cancel" }>,
  agent: Agent<object>
): Effect.Effect<void> => {
  switch (line.type) {
    case "cancel":
      return agent.cancel(line.reason)
    case "steer":
      return agent.steer(line.text, line)
    case "followUp":
      return agent.followUp(line.text)
  }
}

/** Whether all requests of a suspended run have answers. */
const isReady = (agent: Agent<object>, state: Pick<State, "isSuspended">): Effect.Effect<boolean> =>
  Effect.map(
    agent.requests,
    ({ approvals, questions }) => state.isSuspended && approvals.length + questions.length === 0
  )

/**
 * Plays the run of an input, and runs for the messages that came too late for it. Those of a suspended run wait in the session for the
 * run that continues it.
 */
const playAll = Effect.fnUntraced(function* (agent: Agent<object>, play: Play, input: Input, state: State) {
  const note = (event: AgentEvent) => {
    if (event.path === undefined && event._tag === "RunEnd") state.isSuspended = event.status === "suspended"
    return event._tag === "RunStart" ? state.begun.open : Effect.void
  }
  const one = (events: Stream.Stream<AgentEvent, unknown>) =>
    Effect.ensuring(play(Stream.tap(events, note)), state.begun.close)
  const isLeft = Effect.map(agent.queues.sizes, ({ followUp, steering }) => followUp + steering > 0)
  const isNext = Effect.flatMap(isReady(agent, state), (ready) =>
    ready || state.isSuspended ? Effect.succeed(ready) : isLeft
  )
  let isFine = yield* one(input === undefined ? agent.continueStream : agent.stream(input))
  while (isFine && (yield* isNext)) isFine = yield* one(agent.continueStream)
  if (!state.isSuspended) yield* agent.queues.clear("all")
  state.waiting--
})

/** Reads stdin to its end. A bad line is counted and named on stderr. */
const read = Effect.fnUntraced(function* (
  obey: (line: Line) => Effect.Effect<unknown, { readonly message: string }>,
  state: State
) {
  const { err, paint } = yield* Screen
  const { stdin } = yield* Stdio.Stdio
  let number = 0
  const complain = (fault: string) => {
    state.faults++
    return err(`${paint.red("effect-agent:")} ${Inert.line(`Line ${number} of stdin: ${fault}`)}\n`)
  }
  const one = (text: string) => {
    number++
    if (text.trim() === "") return Effect.void
    const line = decode(text)
    return Result.isFailure(line)
      ? complain(line.failure.message)
      : Effect.catch(obey(line.success), ({ message }) => complain(message))
  }
  yield* stdin.pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.runForEach(one),
    Effect.catchTag("PlatformError", ({ message }) => complain(message))
  )
})
