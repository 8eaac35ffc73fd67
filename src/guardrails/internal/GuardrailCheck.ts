/**
 * Runs the checks of guards, and fails closed.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Tracer from "effect/Tracer"
import type { Assistant, ModelMessage } from "../../Message.ts"
import * as Provider from "../../Provider.ts"
import { GuardrailTripped } from "../../internal/failureReason.ts"

type Bound<I> = Options<I, unknown, never>

/** The guards of a layer, with the services that they require. */
export interface Guards {
  readonly input: ReadonlyArray<Bound<Input>>
  readonly output: ReadonlyArray<Bound<Output>>
  readonly stream: ReadonlyArray<Bound<Streamed>>
  /** The characters of a text that are withheld at most. */
  readonly holdBack: number
}

/**
 * Binds guards to the services of their layer, which go over those of the run, but for its span. Runs within a check are not
 * guarded: a guard that asks an agent would check itself.
 */
export const bound = <R>(guards: ReadonlyArray<Guardrail>, services: Context.Context<R>): Guards => {
  const own = Context.add(services, Provider.Guard, {})
  const bind = <I>(guard: Options<I, unknown, R>): Bound<I> => ({
    ...guard,
    check: (input) => {
      const checking = guard.check(input)
      return Effect.isEffect(checking)
        ? Effect.updateContext(checking, (caller: Context.Context<never>) => within(caller, own))
        : checking
    }
  })
  const holdBacks = guards.flatMap((guard) => (guard.stage === "stream" ? [guard.holdBack ?? 256] : []))
  const holdBack = Math.max(0, ...holdBacks)
  return {
    input: guards.flatMap((guard) => (guard.stage === "input" ? [bind(guard)] : [])),
    output: guards.flatMap((guard) => (guard.stage === "output" ? [bind(guard)] : [])),
    stream: guards.flatMap((guard) => (guard.stage === "stream" ? [bind(guard)] : [])),
    // A value that is not a number withholds all: it must not release text that no guard has passed.
    holdBack: Number.isNaN(holdBack) ? Infinity : holdBack
  }
}

const within = <R>(caller: Context.Context<never>, own: Context.Context<R>): Context.Context<R> => {
  const span = Context.getOption(caller, Tracer.ParentSpan)
  const merged = Context.merge(caller, own)
  return span._tag === "None" ? merged : Context.add(merged, Tracer.ParentSpan, span.value)
}

/** Checks a request. Succeeds with words to answer with in place of the model. */
export const input = (
  guards: Guards,
  { request, runId, turn }: Provider.Guarded
): Effect.Effect<string | undefined, GuardrailTripped> => {
  const { messages, model, system } = request
  const last = messages.findLastIndex(({ role }) => role === "assistant")
  const checked: Input = {
    runId,
    turn,
    model,
    ...(system === undefined ? {} : { system }),
    messages,
    news: messages.slice(last + 1)
  }
  return all(guards.input.map((guard) => decide("input", guard, checked)))
}

/** Checks a whole answer and texts of it, as far as they have come. Succeeds with words to put in its place. */
export const output = (
  guards: Guards,
  texts: ReadonlyArray<Streamed>,
  answer: Output | undefined
): Effect.Effect<string | undefined, GuardrailTripped> =>
  all([
    ...texts.flatMap((text) => guards.stream.map((guard) => decide("output", guard, text))),
    ...(answer === undefined ? [] : guards.output.map((guard) => decide("output", guard, answer)))
  ])

type Decision = Effect.Effect<string | undefined, GuardrailTripped>

/** Runs checks side by side. The first that trips interrupts the others. */
const all = (decisions: ReadonlyArray<Decision>): Decision =>
  Effect.map(
    Effect.forEach(decisions, (decision) => decision, { concurrency: "unbounded" }),
    (words) => words.find((text) => text !== undefined)
  )

/** Runs one check. Every end of it but a verdict that passes or replaces is an error. */
const decide = <I>(stage: GuardrailTripped["stage"], guard: Bound<I>, checked: I): Decision => {
  const timeout = Duration.fromInputUnsafe(guard.timeout ?? "10 seconds")
  const tripped = (detail: string) => Effect.fail(new GuardrailTripped({ guard: guard.name, stage, detail }))
  return Effect.suspend(() => {
    const checking: unknown = guard.check(checked)
    return isEffect(checking) ? checking : Effect.fail(noEffect)
  }).pipe(
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.succeed(late) }),
    Effect.matchCauseEffect({
      onFailure: (cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.interrupt : tripped(failureOf(Cause.squash(cause))),
      onSuccess: (verdict) => {
        if (verdict === late) return tripped(`it took longer than ${Duration.format(timeout)}`)
        if (!isVerdict(verdict)) return tripped("it returned no verdict")
        if (verdict._tag === "Trip") return tripped(verdict.detail)
        return Effect.succeed(verdict._tag === "Replace" ? verdict.text : undefined)
      }
    })
  )
}

const late = Symbol("late")
const noEffect = { _tag: "NoEffect" }

const isEffect = (value: unknown): value is Effect.Effect<unknown, unknown> => Effect.isEffect(value)

const isVerdict = (value: unknown): value is Verdict =>
  Predicate.isObject(value) &&
  (value["_tag"] === "Pass" ||
    (value["_tag"] === "Trip" && Predicate.isString(value["detail"])) ||
    (value["_tag"] === "Replace" && Predicate.isString(value["text"])))

/** Names a failure without its text, which may quote what the guard has read. */
const failureOf = (failure: unknown): string => {
  if (failure === noEffect) return "it returned no Effect"
  const name =
    Predicate.hasProperty(failure, "_tag") && Predicate.isString(failure._tag)
      ? failure._tag
      : failure instanceof Error
        ? failure.name
        : typeof failure
  return /^[\w.:/-]{1,60}$/.test(name) ? `it failed with ${name}` : "it failed"
}

// ───────────────────────── Guards

// Guards and their verdicts.
//
// @since 0.2.0

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
