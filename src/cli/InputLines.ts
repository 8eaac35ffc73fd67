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
import * as Approval from "../Approval.ts"
import type { Agent } from "../Agent.ts"
import type { AgentEvent } from "../AgentEvent.ts"
import type * as Message from "../Message.ts"
import type { UsageError } from "./ExitCode.ts"
import * as Inert from "./Inert.ts"
import { Screen } from "./Screen.ts"
import { Signals } from "./Signals.ts"

const Line = Schema.Union([
  Schema.Struct({ type: Schema.Literals(["prompt", "steer", "followUp"]), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("approve"), approvalId: Schema.String, ...Approval.Reply.fields }),
  Schema.Struct({ type: Schema.Literal("answer"), questionId: Schema.String, answer: Schema.Json }),
  Schema.Struct({ type: Schema.Literal("cancel"), reason: Schema.optionalKey(Schema.String) })
])
type Line = typeof Line.Type

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Line))

/** Plays a run, and returns whether it ended without a failure. */
type Play = (events: Stream.Stream<AgentEvent, unknown>) => Effect.Effect<boolean, UsageError>

/** Plays a run for each prompt, one after the other, until stdin ends. Runs `onEnd` then. Returns the number of bad lines. */
export const follow = Effect.fnUntraced(function* (
  agent: Agent<object>,
  play: Play,
  first: Message.Input | undefined,
  onEnd: Effect.Effect<unknown>
) {
  const prompts = yield* Queue.unbounded<Message.Input, Cause.Done>()
  const state = { waiting: 0, faults: 0, isStopped: false, begun: yield* Latch.make() }
  const offer = (input: Message.Input) => {
    state.waiting++
    return Queue.offer(prompts, input)
  }
  if (first !== undefined) yield* offer(first)
  const obey = (line: Line): Effect.Effect<unknown, { readonly message: string }> => {
    switch (line.type) {
      case "prompt":
        return offer(line.text)
      case "approve":
        return agent.answer(line.approvalId, Struct.omit(line, ["type", "approvalId"]))
      case "answer":
        return agent.answerQuestion(line.questionId, { answer: line.answer })
    }
    if (state.waiting === 0) return line.type === "cancel" ? Effect.void : offer(line.text)
    const act = line.type === "cancel" ? agent.cancel(line.reason) : agent[line.type](line.text)
    return Effect.andThen(state.begun.await, act)
  }
  yield* Effect.forkScoped(Effect.andThen(Effect.andThen(read(obey, state), onEnd), Queue.end(prompts)))
  const { ending } = yield* Signals
  const stop = Effect.suspend(() => {
    state.isStopped = true
    return Queue.end(prompts)
  })
  yield* Effect.forkScoped(Effect.andThen(ending, stop))
  yield* Stream.runForEach(Stream.fromQueue(prompts), (input) =>
    state.isStopped ? Effect.void : playAll(agent, play, input, state)
  )
  return state.faults
})

interface State {
  /** The number of prompts whose runs have not ended. */
  waiting: number
  faults: number
  /** Whether the program comes to its end before the lines do. */
  isStopped: boolean
  /** Open during a run. */
  readonly begun: Latch.Latch
}

/** Plays the run of a prompt, and runs for the messages that came too late for it. */
const playAll = Effect.fnUntraced(function* (
  agent: Agent<object>,
  play: Play,
  input: Message.Input,
  state: State
) {
  const one = (events: Stream.Stream<AgentEvent, unknown>) =>
    Effect.ensuring(
      play(Stream.tap(events, ({ _tag }) => (_tag === "RunStart" ? state.begun.open : Effect.void))),
      state.begun.close
    )
  const isLeft = Effect.map(agent.queueSizes, ({ followUp, steering }) => followUp + steering > 0)
  let isFine = yield* one(agent.stream(input))
  while (isFine && (yield* isLeft)) isFine = yield* one(agent.continueStream)
  yield* agent.clearQueue("all")
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
