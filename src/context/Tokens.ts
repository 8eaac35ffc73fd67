/**
 * Counts of tokens, where the provider reports none.
 *
 * **Details**
 *
 * The managers of this entry point go by the figures of the provider first. They count only what came after its last answer, and
 * conversations that no answer has measured.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import { memoize } from "effect/Function"
import { developerText, type Message } from "../Message.ts"
import type { ModelRequest } from "../Provider.ts"

/**
 * The function that counts the tokens of a text.
 *
 * @category models
 * @since 0.2.0
 */
export interface Service {
  /** Counts the tokens of a text. It must be pure: counts of messages are kept. */
  readonly count: (text: string) => number
}

/**
 * Estimates the tokens of a text at four characters for one token, rounded up.
 *
 * **Gotchas**
 *
 * Texts in Chinese or Japanese have up to four times as many tokens. A manager corrects the estimate by the figures of the provider as
 * soon as it has some.
 *
 * **Example** (Estimating a text)
 *
 * ```ts
 * import { Tokens } from "effect-agent/context"
 *
 * console.log(Tokens.estimate("Do I need a coat in Oslo?")) // => 7
 * ```
 *
 * @category getters
 * @since 0.2.0
 */
export const estimate = (text: string): number => Math.ceil(text.length / 4)

/**
 * The service that counts the tokens of texts.
 *
 * **Details**
 *
 * By default it is {@link estimate}. The layers of this entry point take it when they are built: provide it to them.
 *
 * **Example** (Counting words)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { ContextManager, Message } from "effect-agent"
 * import { TokenWindow, Tokens } from "effect-agent/context"
 *
 * const words = Layer.succeed(Tokens.Tokens, { count: (text) => text.split(" ").length })
 * const window = TokenWindow.layer({ maxTokens: 5 }).pipe(Layer.provide(words))
 *
 * const program = Effect.gen(function* () {
 *   const manager = yield* ContextManager.ContextManager
 *   const messages = [Message.user("a b c"), Message.assistant("d e f"), Message.user("g")]
 *   return (yield* manager.view(messages, { model: "any" })).messages.map(Message.textOf)
 * }).pipe(Effect.provide(window))
 *
 * console.log(await Effect.runPromise(program)) // => [ 'a b c', 'g' ]
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export const Tokens = Context.Reference<Service>("effect-agent/context/Tokens", {
  defaultValue: () => ({ count: estimate })
})

/**
 * Counts the tokens of a message.
 *
 * **Details**
 *
 * An image or a file counts as 1000 tokens: the number of its bytes says nothing about its tokens. A custom message has none, since
 * no model reads it.
 *
 * **Example** (Counting a message)
 *
 * ```ts
 * import { Message } from "effect-agent"
 * import { Tokens } from "effect-agent/context"
 *
 * const count = Tokens.ofMessage({ count: Tokens.estimate })
 *
 * console.log(count(Message.user("Do I need a coat in Oslo?"))) // => 7
 * ```
 *
 * @category getters
 * @since 0.2.0
 */
export const ofMessage: (tokens: Service) => (message: Message) => number = memoize(({ count }: Service) =>
  memoize((message: Message) =>
    message.role === "custom"
      ? count(developerText(message) ?? "")
      : message.content.reduce((sum, block) => sum + ofBlock(count, block), 0)
  )
)

type Block = Exclude<Message, { readonly role: "custom" }>["content"][number]

const media = 1_000

const ofBlock = (count: Service["count"], block: Block): number => {
  switch (block.type) {
    case "text":
    case "thinking":
      return count(block.text)
    case "toolCall":
      return count(block.name) + count(block.rawArguments)
    case "source":
    case "hostedTool":
      return count(JSON.stringify(block))
    case "image":
    case "file":
    case "media":
      return media
  }
}

/** @internal Counts the tokens of messages together. */
export const ofMessages = (tokens: Service, messages: Iterable<Message>): number => {
  const count = ofMessage(tokens)
  let sum = 0
  for (const message of messages) sum += count(message)
  return sum
}

/** @internal Counts the parts of a request besides its messages. */
export const besides = (
  tokens: Service,
  { system = "", tools }: Pick<ModelRequest, "system" | "tools">
): number => tools.reduce((sum, tool) => sum + ofTool(tokens)(tool), tokens.count(system))

const ofTool = memoize(({ count }: Service) =>
  memoize((tool: ModelRequest["tools"][number]) => count(JSON.stringify(tool)))
)
