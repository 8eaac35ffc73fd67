/** Prompts and answers on stdin, a JSON object on each line: `--input-format stream-json`. */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import * as Approval from "../../Approval.ts"
import type * as Message from "../../Message.ts"
import type { Events, Place, Player, Problem } from "../agent/Playing.ts"
import { complain } from "./Screen.ts"
import { Signals } from "../ExitCode.ts"

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

/** The beginning of a conversation. */
interface Beginning {
  /** The prompt of the command line, if any. */
  readonly first: Message.Input | undefined
  /** Whether lines without a prompt continue the session. */
  readonly isResumed: boolean
}

/**
 * Plays a run for each prompt, one after the other, until stdin ends. Runs `onEnd` then. A suspended run continues when all its requests
 * have answers, and a session that is resumed at the end of lines without a prompt. Returns the number of bad lines.
 */
export const follow = Effect.fnUntraced(function* (
  player: Player,
  place: Place,
  { first, isResumed }: Beginning,
  onEnd: Effect.Effect<unknown>
) {
  const inputs = yield* Queue.unbounded<Events, Cause.Done>()
  const isSuspended = isResumed && place.isSuspended
  const state: State = { waiting: 0, faults: 0, isBegun: false, isSuspended, isStopped: false }
  const offer = (input: Events) => {
    state.waiting++
    state.isBegun = true
    return Queue.offer(inputs, input)
  }
  const proceed = Effect.flatMap(
    Effect.suspend(() => (state.isSuspended ? place.isReady(true) : Effect.succeed(false))),
    (ready) => (ready && state.waiting === 0 ? offer(place.begin()) : Effect.void)
  )
  yield* first === undefined ? proceed : offer(place.begin(first))
  const atEnd = Effect.suspend(() => (isResumed && !state.isBegun ? offer(place.begin()) : Effect.void))
  const lines = Effect.andThen(
    Effect.andThen(
      read((line) => obey(line, player, place, state, { offer, proceed }), state),
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
    state.isStopped ? Effect.void : Effect.andThen(playAll(player, place, input, state), proceed)
  )
  return state.faults
})

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
}

interface Next {
  /** Plays a run. */
  readonly offer: (input: Events) => Effect.Effect<unknown>
  /** Continues the suspended run, if all its requests have answers. */
  readonly proceed: Effect.Effect<unknown>
}

const obey = (
  line: Line,
  player: Player,
  place: Place,
  state: State,
  { offer, proceed }: Next
): Effect.Effect<unknown, { readonly message: string }> => {
  const answered = (next: Events | undefined) => (next === undefined ? proceed : offer(next))
  switch (line.type) {
    case "prompt":
      return offer(place.begin(line.text))
    case "approve": {
      const reply = Struct.omit(line, ["type", "approvalId"])
      return Effect.flatMap(place.answer(line.approvalId, reply), answered)
    }
    case "answer":
      return Effect.flatMap(place.answer(line.questionId, { answer: line.answer }), answered)
  }
  if (state.waiting === 0) return line.type === "cancel" ? Effect.void : offer(place.begin(line.text))
  if (line.type === "cancel") return Effect.andThen(player.begun.await, place.cancel(line.reason))
  const sent = line.type === "steer" ? place.steer(line.text, line) : place.followUp(line.text)
  return Effect.catch(
    Effect.andThen(player.begun.await, sent),
    (problem): Effect.Effect<unknown, Problem> =>
      problem._tag === "RunOver" ? offer(place.begin(line.text)) : Effect.fail(problem)
  )
}

/**
 * Plays the run of an input, and runs for the messages that came too late for it. Those of a suspended run wait in the session for the
 * run that continues it.
 */
const playAll = Effect.fnUntraced(function* (player: Player, place: Place, input: Events, state: State) {
  let isNext = true
  for (let next = input; isNext; next = place.begin()) {
    const { status } = yield* player.play(next)
    state.isSuspended = status === "suspended"
    isNext = status !== "cancelled" && status !== "failed" && (yield* place.isReady(state.isSuspended))
  }
  if (!state.isSuspended) yield* place.clear
  state.waiting--
})

/** Reads stdin to its end. A bad line is counted and named on stderr. */
const read = Effect.fnUntraced(function* (
  obey: (line: Line) => Effect.Effect<unknown, { readonly message: string }>,
  state: State
) {
  const { stdin } = yield* Stdio.Stdio
  let number = 0
  const refuse = (fault: string) => {
    state.faults++
    return complain(`Line ${number} of stdin: ${fault}`)
  }
  const one = (text: string) => {
    number++
    if (text.trim() === "") return Effect.void
    const line = decode(text)
    return Result.isFailure(line)
      ? refuse(line.failure.message)
      : Effect.catch(obey(line.success), ({ message }) => refuse(message))
  }
  yield* stdin.pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.runForEach(one),
    Effect.catchTag("PlatformError", ({ message }) => refuse(message))
  )
})
