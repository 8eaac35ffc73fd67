/**
 * Puts a summary in place of older messages when a conversation nears the end of the context window.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ContextManager from "../ContextManager.ts"
import type { Conversation, Plan, Service, Trigger } from "../ContextManager.ts"
import type { Message } from "../Message.ts"
import * as Prices from "../Prices.ts"
import { Provider } from "../Provider.ts"
import type { Limits, ModelOptions } from "../RunOptions.ts"
import * as Transcript from "../Transcript.ts"
import * as Tokens from "./Tokens.ts"
import * as Summary from "./internal/Summary.ts"

/**
 * The options of the compaction.
 *
 * **Details**
 *
 * `E` and `R` are the errors and requirements of `provider`. Default: none.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options<out E = never, out R = never> {
  /**
   * The most tokens of a request and its answer, or a function that finds them by the id of the model. Default: that of the service
   * `Prices`, else 128,000.
   */
  readonly contextWindow?: number | ((model: string) => number | undefined)
  /**
   * The tokens of the context window that stay free for the answer. A compaction is due when the request has more than the rest.
   * Default: a sixth of the context window, at most 16,384.
   */
  readonly reserve?: number
  /**
   * The most tokens of the newest turns, which stay as they are. Default: an eighth of the context window, at most 20,000.
   *
   * The newest turn always stays. A compaction by hand, and one after `ContextOverflow`, keeps at most a quarter of the conversation.
   */
  readonly keepRecent?: number
  /** The id of the model that summarizes. Default: that of the run. */
  readonly model?: string
  /** The provider of the model that summarizes. Default: that of the run. */
  readonly provider?: Layer.Layer<Provider, E, R>
  /** The options of its calls. Default: the provider's. */
  readonly modelOptions?: ModelOptions
  /** The system prompt of its calls. Default: instructions to keep goals, facts, decisions and open work. */
  readonly prompt?: string
  /** The most characters of a tool result that it reads, as the start and the end of longer ones. Default 4000. */
  readonly maxResult?: number
  /**
   * The budget of one compaction: `maxTotalTokens` and `maxCost` of all its calls, `executionTime` of each. Default: that of the run,
   * in which its tokens count in any case.
   */
  readonly limits?: Pick<Limits, "maxTotalTokens" | "maxCost" | "prices" | "executionTime">
}

/**
 * Makes a layer that compacts conversations.
 *
 * **Details**
 *
 * A request that would leave less than `reserve` tokens of the context window free is compacted first: a model summarizes older turns, and
 * this request and all later ones have the first user message (one that fills more than half of the window is summarized too), the summary and the newest turns. So does, once, a conversation that the
 * provider refuses with `ContextOverflow`, or in unknown words while it fills half of the context window, and `agent.compact`. The transcript stays whole. The summary holds until the next
 * compaction, which summarizes it in its turn, so that the start of the requests, which vendors cache, does not change in between.
 *
 * The size of a request is that of the last answer's `usage`, and an estimate of what came since: see `Tokens`. Conversations that are
 * longer than the context window of the model that summarizes are summarized in parts. No hook is called for its requests,
 * since hooks prepare the requests of turns; a `Provider.Guard` checks these requests too.
 *
 * A compaction fails if the model fails, if its answer is cut or refused, or if the summary is empty or not shorter. The run continues
 * then, and tries again when the conversation has grown by a tenth.
 *
 * **Gotchas**
 *
 * A layer that chooses messages works together with this one if it is provided to it:
 * `Compaction.layer().pipe(Layer.provide(Pruning.layer()))`.
 *
 * **Example** (Compacting a long conversation)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Message } from "effect-agent"
 * import { Compaction } from "effect-agent/context"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const script = [
 *   ScriptedProvider.text("x".repeat(4_000)),
 *   ScriptedProvider.text("It wrote x."),
 *   ScriptedProvider.text("done")
 * ]
 *
 * const program = Effect.gen(function* () {
 *   const provider = yield* ScriptedProvider.make(script)
 *   const agent = yield* Agent.make({ model: "any" }).pipe(
 *     Effect.provide([provider.layer, Compaction.layer({ contextWindow: 1_000, keepRecent: 100 })])
 *   )
 *   yield* agent.prompt("Write x")
 *   yield* agent.prompt("And now?")
 *   const [, , last] = yield* provider.requests
 *   return last?.messages.map((message) => Message.textOf(message).split("\n").at(-1))
 * }).pipe(Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ 'Write x', 'It wrote x.', 'And now?' ]
 * ```
 *
 * **Example** (Summarizing with a model of its own)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { Compaction } from "effect-agent/context"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const compaction = Compaction.layer({
 *   contextWindow: 200_000,
 *   model: "small",
 *   provider: ScriptedProvider.layer([ScriptedProvider.text("They counted.")]),
 *   limits: { maxCost: 0.05 }
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "large" })
 *   for (const text of ["One", "Two"]) yield* agent.prompt(text)
 *   const { compaction, status } = yield* agent.compact("Keep the numbers.")
 *   return [status, compaction?.summary]
 * }).pipe(
 *   Effect.provide([ScriptedProvider.layer(["1".repeat(4_000), "2"].map((text) => ScriptedProvider.text(text))), compaction]),
 *   Effect.scoped
 * )
 *
 * console.log(await Effect.runPromise(program)) // => [ 'compacted', 'They counted.' ]
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = <E = never, R = never>(options: Options<E, R> = {}): Layer.Layer<never, E, R> =>
  Layer.effect(
    ContextManager.ContextManager,
    Effect.gen(function* () {
      const inner = yield* ContextManager.ContextManager
      const tokens = yield* Tokens.Tokens
      const { provider } = options
      const own = provider === undefined ? undefined : Context.get(yield* Layer.build(provider), Provider)
      return {
        ...inner,
        compact: (conversation, trigger) => plan({ options, inner, tokens, own }, conversation, trigger)
      }
    })
  )

/** The options of the layer, and the services that it was built with. */
interface Setting {
  readonly options: Omit<Options<unknown, unknown>, "provider">
  readonly inner: Service
  readonly tokens: Tokens.Service
  /** The provider of the model that summarizes; `undefined` for that of the run. */
  readonly own: Provider["Service"] | undefined
}

const plan = Effect.fnUntraced(function* (
  { inner, options, own, tokens }: Setting,
  conversation: Conversation,
  trigger: Trigger
): Effect.fn.Return<Plan | undefined, never, Provider> {
  const { compaction, messages } = conversation
  const measure = yield* measureOf(inner, tokens, conversation)
  const window = yield* of(options.contextWindow, yield* answering(conversation))
  const most = window - (options.reserve ?? reserve(window))
  const { reason } = trigger
  // What the application says of the window counts more than the price list.
  const fits = reason === "overflow" && trigger.size !== undefined && trigger.size <= window
  const least = reason === "threshold" ? most : reason === "refusal" ? window / 2 : 0
  const isDue = measure.total >= least && !fits
  const readable = reason === "overflow" ? Math.min(window, trigger.limit ?? Infinity, measure.total) : window
  const keep = keepOf(options, window, measure, trigger)
  const cut = isDue ? make(messages, compaction, { keep, maxFirst: readable / 2 }, measure.of) : undefined
  if (cut === undefined) return undefined
  const cutAt = {
    firstKept: cut.firstKept.id,
    ...(cut.summarizesFirst ? { summarizesFirst: true } : {})
  }
  const saved = measure.total - (yield* measure.after({ summary: "", ...cutAt }))
  if (reason === "threshold" ? saved < most * worthwhile : saved <= 0) return undefined
  const summarize = Effect.gen(function* () {
    const summarizer = yield* summarizerOf(options, conversation, readable, measure)
    const { summary, usage } = yield* Summary.make(summarizer, {
      task: cut.summarizesFirst ? undefined : messages.find(({ role }) => role === "user"),
      previous: compaction?.summary,
      older: cut.older,
      instructions: trigger.reason === "manual" ? trigger.instructions : undefined
    })
    return { summary, ...cutAt, usage, tokensAfter: yield* measure.after({ summary, ...cutAt }) }
  })
  return {
    tokensBefore: measure.total,
    summarize: own === undefined ? summarize : Effect.provideService(summarize, Provider, own)
  }
})

/** The part of the request that a summary must be able to save before its cost is worthwhile. */
const worthwhile = 0.1

/** The tokens of the newest turns that stay. */
const keepOf = (
  { keepRecent }: Setting["options"],
  window: number,
  { total }: Measure,
  trigger: Trigger
): number => {
  const keep = keepRecent ?? Math.min(20_000, window / 8)
  if (trigger.reason === "threshold") return keep
  const limit = trigger.reason === "overflow" ? (trigger.limit ?? Infinity) : Infinity
  return Math.min(keep, total / 4, limit / 4)
}

/** The model that answers the next request, as far as it is known. A router names its providers in the answers alone. */
const answering = ({ measured, request }: Conversation) =>
  Effect.map(Provider, ({ id }) => ({ provider: measured?.provider ?? id, model: request.model }))

const summarizerOf = Effect.fnUntraced(function* (
  { contextWindow, limits, maxResult = 4_000, model, modelOptions, prompt }: Setting["options"],
  { request }: Conversation,
  ofRun: number,
  { ofText }: Measure
): Effect.fn.Return<Summary.Summarizer, never, Provider> {
  const { id } = yield* Provider
  const given = typeof contextWindow === "function" ? contextWindow : undefined
  const window = model === undefined ? ofRun : yield* of(given, { provider: id, model })
  return {
    model: model ?? request.model,
    modelOptions,
    system: prompt ?? Summary.system,
    limits,
    // A summary is shorter than many answers.
    maxInput: window - reserve(window) / 2,
    maxResult: Math.min(maxResult, window / 4),
    count: ofText
  }
})

// ───────────────────────── The cut

/** A cut conversation. */
interface Cut {
  /** The messages that the summary stands for, without those that an earlier summary does. */
  readonly older: ReadonlyArray<Message>
  /** The oldest message that stays. */
  readonly firstKept: Message
  /** Whether the first user message is among those that the summary stands for. */
  readonly summarizesFirst: boolean
}

/**
 * The longest end of the conversation that begins with a turn and is within `keep`, or else its newest turn. The first user message
 * stays as it is up to `maxFirst` tokens.
 */
const make = (
  messages: ReadonlyArray<Message>,
  compaction: Transcript.Compaction | undefined,
  { keep, maxFirst }: { readonly keep: number; readonly maxFirst: number },
  tokensOf: (messages: ReadonlyArray<Message>) => number
): Cut | undefined => {
  const since = messages.findIndex(({ id }) => id === compaction?.firstKept)
  const from = Math.max(0, since)
  const firstUser = messages.findIndex(({ role }) => role === "user")
  const places = Transcript.turnStarts(messages).filter((place) => place > from && place > firstUser)
  let [place, ...earlier] = places.reverse()
  if (place === undefined) return undefined
  let kept = tokensOf(messages.slice(place))
  for (const next of earlier) {
    kept += tokensOf(messages.slice(next, place))
    if (kept > keep) break
    place = next
  }
  const firstKept = messages[place]
  const first = messages.slice(firstUser, firstUser + 1)
  const isSummarized = compaction?.summarizesFirst === true
  const summarizesFirst = isSummarized || tokensOf(first) > maxFirst
  const older = [
    ...(summarizesFirst && !isSummarized ? first : []),
    ...messages.slice(from, place).filter((_, index) => from + index !== firstUser)
  ]
  return firstKept === undefined || older.length === 0 ? undefined : { older, firstKept, summarizesFirst }
}

// ───────────────────────── The measure

/** The size of the next request. */
interface Measure {
  /** The tokens of the request. */
  readonly total: number
  /** Counts the tokens of messages, corrected by the figures of the provider. */
  readonly of: (messages: Iterable<Message>) => number
  /** Counts the tokens of a text, corrected too. */
  readonly ofText: (text: string) => number
  /** Returns the tokens of the request with another compaction. */
  readonly after: (compaction: Transcript.Compaction) => Effect.Effect<number>
}

const measureOf = Effect.fnUntraced(function* (
  manager: ContextManager.Service,
  tokens: Tokens.Service,
  { compaction, measured, messages, options, request }: ContextManager.Conversation
): Effect.fn.Return<Measure> {
  const sent = (messages: ReadonlyArray<Message>, compaction: Transcript.Compaction | undefined) => {
    const compacted = Transcript.compacted(messages, compaction)
    const viewed = manager.view(compacted.messages, options)
    // A view that fails fails the run, when it makes the request.
    return Effect.map(
      Effect.orElseSucceed(viewed, () => compacted),
      (view) => view.messages
    )
  }
  const now = yield* sent(messages, compaction)
  const measure = (total: number, scale: number): Measure => {
    const of = (messages: Iterable<Message>) => Tokens.ofMessages(tokens, messages) * scale
    return {
      total: Math.max(0, Math.round(total)),
      of,
      ofText: (text) => tokens.count(text) * scale,
      after: (compaction) =>
        Effect.map(sent(messages, compaction), (after) =>
          Math.max(0, Math.round(total + change(of, now, after)))
        )
    }
  }
  const besides = Tokens.besides(tokens, request)
  const { usage } = measured ?? {}
  if (measured === undefined || usage === undefined) {
    return measure(Tokens.ofMessages(tokens, now) + besides, 1)
  }
  // The request of the answer that measures: the messages before it.
  const before = yield* sent(messages.slice(0, messages.lastIndexOf(measured)), compaction)
  const counted = Tokens.ofMessages(tokens, before) + besides
  const scale = Math.min(maxScale, Math.max(1 / maxScale, usage.input / Math.max(1, counted)))
  const of = (messages: Iterable<Message>) => Tokens.ofMessages(tokens, messages) * scale
  return measure(usage.input + usage.output + change(of, [...before, measured], now), scale)
})

/** The most by which counts of texts are corrected: figures of a provider can include what no message holds. */
const maxScale = 4

/** The tokens that one view has more than another. */
const change = (of: Measure["of"], before: ReadonlyArray<Message>, after: ReadonlyArray<Message>): number => {
  const [known, left] = [new Set(before), new Set(after)]
  return (
    of(after.filter((message) => !known.has(message))) - of(before.filter((message) => !left.has(message)))
  )
}

/** A number, or a function that finds it by the id of a model. */
type Given = number | ((model: string) => number | undefined) | undefined

/** Where nothing is known of the model. */
const usual = 128_000

/** The context window of a model in tokens: as given, else as the price list has it. */
const of = Effect.fnUntraced(function* (given: Given, asked: Prices.Model) {
  const known = typeof given === "function" ? given(asked.model) : given
  if (known !== undefined) return known
  const { find } = yield* Prices.Prices
  const price = yield* find(asked)
  if (price?.contextWindow !== undefined) return price.contextWindow
  // The id for a router begins with that of the provider.
  const slash = asked.model.indexOf("/")
  if (slash === -1) return usual
  const routed = { provider: asked.model.slice(0, slash), model: asked.model.slice(slash + 1) }
  return (yield* find(routed))?.contextWindow ?? usual
})

/** The tokens of a context window that stay free for the answer, unless the application says otherwise. */
const reserve = (window: number): number => Math.min(16_384, window / 6)
