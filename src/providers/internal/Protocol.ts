/**
 * One wire language, such as OpenAI's Chat Completions. It knows bodies and events, and nothing of addresses, keys or
 * HTTP, so that dozens of vendors share it and a test replays it from an array.
 *
 * A protocol is total and deterministic: the same wire gives the same model events, and nothing throws. Its state is a
 * private accumulator, made anew for each answer and changed in place, because `step` runs once per delta.
 */
import type { Adjustment, ModelEvent } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import * as Json from "./json.ts"
import type { Question } from "./question.ts"

/** What an answer knows of the call it belongs to. */
export interface Call {
  /** As it was asked for. */
  readonly model: string
  /** Unique per call: makes the ids that a wire leaves out. */
  readonly seed: string
  /** The options that were changed for the model. Default none. */
  readonly adjusted?: ReadonlyArray<Adjustment>
}

export interface Protocol<Wire, State> {
  /** The `protocol` of its answers: "openai-chat". */
  readonly name: string
  /** The body of a request, or why the conversation cannot be sent. */
  readonly encode: (question: Question) => string | Reason
  /** Data that says that nothing follows, where the language has such. */
  readonly sentinel?: "[DONE]"
  readonly initial: (call: Call) => State
  /** Reads the data of one event. A failure is one that the event reports, or that it is no event of this language. */
  readonly wire: (data: string, state: State) => Wire | Reason
  /** Adds what the event says to `out`. True: it was the last one of the answer. */
  readonly step: (state: State, wire: Wire, out: Array<ModelEvent>) => boolean
  /**
   * The answer is over: adds what is still owed, `Finish` last, or says why the answer is not complete and adds nothing
   * that would make a block of it look so. `told`: the server said that this was all, by a last event or the sentinel.
   */
  readonly end: (state: State, told: boolean, out: Array<ModelEvent>) => Reason | undefined
  /**
   * Whether the answer would be complete if nothing followed: for a language in which something still may, or whose end is
   * only that of the body.
   */
  readonly isComplete?: (state: State) => boolean
  /**
   * For a language whose server may pause in the middle of an answer. What to ask next, if it did, once `end` has found
   * nothing missing; what comes then is read with the same state, and is the same answer.
   */
  readonly resume?: (state: State, question: Question) => Question | undefined
}

/** A failure, where a wire may be. Reasons are errors, and a wire is a plain object. */
export const isReason = <Wire>(read: Wire | Reason): read is Reason => read instanceof Error

/** The first event of an answer in the language `protocol`. */
export const startOf = (
  { call, provider }: { readonly call: Call; readonly provider: string },
  protocol: string,
  responseId: string | undefined
): ModelEvent => ({
  _tag: "Start",
  provider,
  model: call.model,
  protocol,
  ...(responseId === undefined ? {} : { responseId }),
  ...(call.adjusted === undefined || call.adjusted.length === 0 ? {} : { adjusted: call.adjusted })
})

/** The first of the answers that an event tells of. Others may be interleaved, when more than one was asked for. */
export const firstAnswer = (answers: Json.Json | undefined): Json.JsonObject | undefined => {
  for (const answer of Json.array(answers)) {
    if (Json.isObject(answer) && (answer["index"] ?? 0) === 0) return answer
  }
  return undefined
}
