/**
 * The interface of a wire protocol, such as OpenAI's Chat Completions.
 *
 * A protocol handles bodies and events, not addresses, keys or HTTP, so that many vendors share it and a test
 * can replay it from an array. It is total and deterministic: equal input gives equal model events, and no
 * function throws. Its state belongs to one answer and is mutable, because `step` runs for each delta.
 */
import type { Adjustment, ModelEvent } from "../../ModelEvent.ts"
import type { Reason } from "../../ProviderError.ts"
import * as Json from "./json.ts"
import type { Question } from "./question.ts"

/** The call to which an answer belongs. */
export interface Call {
  /** The model id of the request. */
  readonly model: string
  /** Unique for each call. The base of ids that the server leaves out. */
  readonly seed: string
  /** The options that were changed for the model. Default: none. */
  readonly adjusted?: ReadonlyArray<Adjustment>
}

export interface Protocol<Wire, State> {
  /** The `protocol` of the answers, such as `openai-chat`. */
  readonly name: string
  /** Encodes the body of a request. A `Reason` if the conversation cannot be sent. */
  readonly encode: (question: Question) => string | Reason
  /** The data that marks the end of an answer. Default: the protocol has none. */
  readonly sentinel?: "[DONE]"
  readonly initial: (call: Call) => State
  /**
   * Decodes the data of one event. A `Reason` if the event reports a failure or does not belong to the
   * protocol.
   */
  readonly wire: (data: string, state: State) => Wire | Reason
  /** Appends the model events of one wire event to `out`. Returns `true` after the last event of the answer. */
  readonly step: (state: State, wire: Wire, out: Array<ModelEvent>) => boolean
  /**
   * Ends the answer: appends the remaining events, `Finish` last. If the answer is incomplete, returns the
   * `Reason` and appends nothing that would complete a block. `sawEnd`: the server sent a last event or the
   * sentinel.
   */
  readonly end: (state: State, sawEnd: boolean, out: Array<ModelEvent>) => Reason | undefined
  /**
   * Whether the answer is complete if nothing follows. For protocols in which more events may follow, or in
   * which only the end of the body ends an answer.
   */
  readonly isComplete?: (state: State) => boolean
  /**
   * For protocols whose server may pause an answer. Returns the request that continues it, after `end` found
   * nothing missing. The continuation uses the same state and belongs to the same answer.
   */
  readonly resume?: (state: State, question: Question) => Question | undefined
}

/** Whether a value is a failure. Reasons are errors, wire events are plain objects. */
export const isReason = <Wire>(read: Wire | Reason): read is Reason => read instanceof Error

/** The names that a server gives an answer. */
export interface Named {
  /** The id of the answer, `undefined` if the server sends none. */
  responseId: string | undefined
  /** The id of the model that answered, `undefined` if the server sends none. */
  responseModel: string | undefined
}

/** The first event of an answer. Leaves out a model that has the id of the request. */
export const startOf = (
  { call, provider, responseId, responseModel }: Named & { readonly call: Call; readonly provider: string },
  protocol: string
): ModelEvent => ({
  _tag: "Start",
  provider,
  model: call.model,
  protocol,
  ...(responseId === undefined ? {} : { responseId }),
  ...(responseModel === undefined || responseModel === call.model ? {} : { responseModel }),
  ...(call.adjusted === undefined || call.adjusted.length === 0 ? {} : { adjusted: call.adjusted })
})

/** The first choice of an event. With several choices their events are interleaved. */
export const firstAnswer = (answers: Json.Json | undefined): Json.JsonObject | undefined => {
  for (const answer of Json.array(answers)) {
    if (Json.isObject(answer) && (answer["index"] ?? 0) === 0) return answer
  }
  return undefined
}
