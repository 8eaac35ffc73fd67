/**
 * Sends the newest messages that are within a number of tokens.
 *
 * @since 0.2.0
 */
import type * as Layer from "effect/Layer"
import type { Message } from "../Message.ts"
import * as Transcript from "../Transcript.ts"
import * as Tokens from "./Tokens.ts"
import * as ViewChange from "./internal/ViewChange.ts"

/**
 * The options of a window.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The most tokens of the messages in a request. The system prompt and the tools do not count. */
  readonly maxTokens: number
  /** Whether the first user message stays, which mostly is the task. Default `true`. */
  readonly keepFirstUser?: boolean
  /**
   * The number of tokens by which the window moves on at a time, so that the start of the requests, which vendors cache, changes
   * seldom. Default: a quarter of `maxTokens`.
   */
  readonly step?: number
}

/**
 * Sends the newest messages within `maxTokens`, and never a call without its result.
 *
 * **Details**
 *
 * The window begins where a turn begins. The newest turn always stays, even if it is longer. A custom message of the kind `"developer"`
 * at the start stays too. The window works on the messages that the manager before it chooses: provide another layer to this one to
 * put both into effect.
 *
 * **Example** (Sending about a thousand tokens)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { TokenWindow } from "effect-agent/context"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const long = "x".repeat(2_000)
 *
 * const program = Effect.gen(function* () {
 *   const script = yield* ScriptedProvider.make([long, long, "done"].map((text) => ScriptedProvider.text(text)))
 *   const agent = yield* Agent.make({ model: "any" }).pipe(
 *     Effect.provide([script.layer, TokenWindow.layer({ maxTokens: 1_000 })])
 *   )
 *   for (const text of ["One", "Two", "Three"]) yield* agent.prompt(text)
 *   return (yield* script.requests).map(({ messages }) => messages.length)
 * }).pipe(Effect.scoped)
 *
 * console.log(await Effect.runPromise(program)) // => [ 1, 3, 4 ]
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (options: Options): Layer.Layer<never> =>
  ViewChange.layer((view, tokens) => {
    const trimmed = window(tokens, options, view.messages)
    if (trimmed.dropped === 0) return view
    return { ...trimmed, dropped: view.dropped + trimmed.dropped, reason: "window" }
  })

const window = (
  tokens: Tokens.Service,
  { keepFirstUser = true, maxTokens, step = maxTokens / 4 }: Options,
  messages: ReadonlyArray<Message>
): Transcript.Trimmed => {
  const over = Tokens.ofMessages(tokens, messages) - maxTokens
  if (over <= 0) return { messages, dropped: 0 }
  const firstUser = keepFirstUser ? messages.findIndex(({ role }) => role === "user") : -1
  const isKept = (message: Message, index: number) =>
    index === firstUser || (index === 0 && message.role === "custom" && message.kind === "developer")
  const target = Math.ceil(over / Math.max(1, step)) * Math.max(1, step)
  const starts = Transcript.turnStarts(messages)
  const count = Tokens.ofMessage(tokens)
  let start = 0
  let removed = 0
  for (const next of starts.slice(1)) {
    if (removed >= target) break
    for (; start < next; start++) {
      const message = messages[start]
      if (message !== undefined && !isKept(message, start)) removed += count(message)
    }
  }
  const head = messages.slice(0, start).filter(isKept)
  const dropped = start - head.length
  return dropped === 0 ? { messages, dropped } : { messages: [...head, ...messages.slice(start)], dropped }
}
