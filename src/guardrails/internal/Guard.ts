/**
 * Guards and their verdicts.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { Assistant, ModelMessage } from "../../Message.ts"

/**
 * The messages that an input guard checks.
 *
 * @category models
 * @since 0.2.0
 */
export interface Input {
  /** The id of the run. */
  readonly runId: string
  /** The number of the turn, from 1. */
  readonly turn: number
  /** The id of the model. */
  readonly model: string
  /** The system prompt, if there is one. */
  readonly system?: string
  /** All messages of the request, oldest first. */
  readonly messages: ReadonlyArray<ModelMessage>
  /** The messages after the last answer of the model: prompts, and results of tools. */
  readonly news: ReadonlyArray<ModelMessage>
}

/**
 * The whole answer that an output guard checks.
 *
 * @category models
 * @since 0.2.0
 */
export interface Output {
  /** The id of the run. */
  readonly runId: string
  /** The number of the turn, from 1. */
  readonly turn: number
  /** The text of the answer, without thinking and tool calls. */
  readonly text: string
  /** The blocks of the answer. */
  readonly content: Assistant["content"]
}

/**
 * A text that a stream guard checks, as far as it has come.
 *
 * @category models
 * @since 0.2.0
 */
export interface Streamed {
  /** The id of the run. */
  readonly runId: string
  /** The number of the turn, from 1. */
  readonly turn: number
  /** The part of the answer: its text, its thinking, or the JSON text of the arguments of one tool call. */
  readonly kind: "text" | "thinking" | "arguments"
  /** The part from its start, with the text of all blocks of text, or of all blocks of thinking. */
  readonly text: string
  /** The number of characters at the start of `text` that the guard has passed before. */
  readonly passed: number
}

/**
 * The decision of a guard, which `pass`, `trip` and `replace` make.
 *
 * @category models
 * @since 0.2.0
 */
export type Verdict =
  | { readonly _tag: "Pass" }
  | { readonly _tag: "Trip"; readonly detail: string }
  | { readonly _tag: "Replace"; readonly text: string }

/**
 * The verdict that lets the messages or the answer through.
 *
 * @category constants
 * @since 0.2.0
 */
export const pass: Verdict = { _tag: "Pass" }

/**
 * Makes the verdict that fails the run with `GuardrailTripped`.
 *
 * **Gotchas**
 *
 * `detail` is in events and in the transcript: do not quote the text that the guard withholds.
 *
 * **Example** (Stopping a run)
 *
 * ```ts
 * import { Guardrail } from "effect-agent/guardrails"
 *
 * console.log(Guardrail.trip("it has a password")) // => { _tag: 'Trip', detail: 'it has a password' }
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const trip = (detail: string): Verdict => ({ _tag: "Trip", detail })

/**
 * Makes the verdict that puts other words in the place of the answer.
 *
 * **Details**
 *
 * The run ends with these words, unless something is queued. Tool calls of the answer do not run. If others have seen a part of the
 * answer, the run retracts it (`MessageRetracted`).
 *
 * **Example** (Answering in other words)
 *
 * ```ts
 * import { Guardrail } from "effect-agent/guardrails"
 *
 * console.log(Guardrail.replace("I cannot help with that.")._tag) // => Replace
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const replace = (text: string): Verdict => ({ _tag: "Replace", text })

/**
 * Options of every guard.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options<in I, out E, out R> {
  /** The name of the guard in `GuardrailTripped`. */
  readonly name: string
  /** Decides. */
  readonly check: (checked: I) => Effect.Effect<Verdict, E, R>
  /** The time for one check. A guard that takes longer stops the run. Default 10 seconds. */
  readonly timeout?: Duration.Input
}

/**
 * A guard, which `input`, `output` and `stream` make.
 *
 * @category models
 * @since 0.2.0
 */
export type Guardrail<R = any> =
  | ({ readonly stage: "input" } & Options<Input, unknown, R>)
  | ({ readonly stage: "output" } & Options<Output, unknown, R>)
  | ({ readonly stage: "stream"; readonly holdBack?: number } & Options<Streamed, unknown, R>)
