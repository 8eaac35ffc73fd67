/**
 * The wire protocols of this package, for servers of one's own: give one to `Transport.make`.
 *
 * @since 0.2.0
 */
import { anthropicMessages as messages } from "./internal/anthropic/protocol.ts"
import { bedrockConverse as converse } from "./internal/bedrock/protocol.ts"
import { googleGenerate } from "./internal/gemini/protocol.ts"
import { type Compat, complete } from "./internal/openAiChat/compat.ts"
import { openAiChat as chat } from "./internal/openAiChat/protocol.ts"
import { openAiResponses as responses } from "./internal/openAiResponses/protocol.ts"
import type { Protocol } from "./Protocol.ts"

export type { Compat } from "./internal/openAiChat/compat.ts"

/**
 * OpenAI's Chat Completions, the protocol of most servers.
 *
 * **Details**
 *
 * `compat` names the differences of the server from most others.
 *
 * **Example** (Making the protocol of a provider)
 *
 * ```ts
 * import { Protocols } from "effect-agent/providers"
 *
 * console.log(Protocols.openAiChat("acme").name) // => openai-chat
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const openAiChat = (provider: string, compat: Partial<Compat> = {}): Protocol =>
  chat(provider, complete(compat))

/**
 * OpenAI's Responses.
 *
 * **Example** (Making the protocol of a provider)
 *
 * ```ts
 * import { Protocols } from "effect-agent/providers"
 *
 * console.log(Protocols.openAiResponses("acme").name) // => openai-responses
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const openAiResponses = (provider: string): Protocol => responses(provider)

/**
 * Anthropic's Messages.
 *
 * **Example** (Making the protocol of a provider)
 *
 * ```ts
 * import { Protocols } from "effect-agent/providers"
 *
 * console.log(Protocols.anthropicMessages("acme").name) // => anthropic-messages
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const anthropicMessages = (provider: string): Protocol => messages(provider)

/**
 * Gemini's `generateContent`.
 *
 * **Example** (Making the protocol of a provider)
 *
 * ```ts
 * import { Protocols } from "effect-agent/providers"
 *
 * console.log(Protocols.gemini("acme").name) // => google-generative
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const gemini = (provider: string): Protocol => googleGenerate(provider)

/**
 * Amazon Bedrock's Converse.
 *
 * **Details**
 *
 * Its answers are an AWS event stream: give `Transport.make` the framing `Framing.awsEventStream`.
 *
 * **Example** (Making the protocol of a provider)
 *
 * ```ts
 * import { Protocols } from "effect-agent/providers"
 *
 * console.log(Protocols.bedrockConverse("acme").name) // => bedrock-converse
 * ```
 *
 * @since 0.2.0
 * @category constructors
 */
export const bedrockConverse = (provider: string): Protocol => converse(provider)
