import { Models } from "effect-agent/providers"
import type { ModelRequest } from "../../src/Provider.ts"
import type { Reason } from "../../src/ProviderError.ts"
import type { Serves } from "../../src/providers/Deployment.ts"
import * as Adjust from "../../src/providers/internal/adjust.ts"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { bedrockConverse } from "../../src/providers/internal/bedrock/protocol.ts"
import { googleGenerate } from "../../src/providers/internal/gemini/protocol.ts"
import { common } from "../../src/providers/internal/openAiChat/compat.ts"
import { openAiChat } from "../../src/providers/internal/openAiChat/protocol.ts"
import { openAiResponses } from "../../src/providers/internal/openAiResponses/protocol.ts"
import type { Question } from "../../src/providers/Protocol.ts"
import type * as Servers from "../../src/providers/internal/support.ts"
import { isReason, type Protocol } from "../../src/providers/Protocol.ts"

const protocols = {
  chat: (id: string) => openAiChat(id, common),
  responses: openAiResponses,
  messages: anthropicMessages,
  generateContent: googleGenerate,
  converse: bedrockConverse
}

/** An API that has a protocol. */
export type Endpoint = keyof typeof protocols

/** A server by its API, whose models have the rules of the table. */
export interface Server extends Serves, Pick<Models.Served, "own"> {
  readonly id: string
  readonly endpoint?: Endpoint
  /** Its protocol, or the name of one that says nothing of its API. */
  readonly protocol?: Protocol | string
  readonly lacks?: NonNullable<Protocol["lacks"]>
  readonly refuses?: NonNullable<Protocol["refuses"]>
  readonly schemas?: Protocol["schemas"]
}

export const serverOf = (server: Server): Servers.Server => {
  const { endpoint, id, lacks, own: _own, protocol = "acme", refuses, schemas, ...serves } = server
  const named = typeof protocol === "string" ? unknown(protocol, id) : protocol
  // Each test of the encoders has what they refuse too.
  const { refuses: _none, ...known } = endpoint === undefined ? named : protocols[endpoint](id)
  return {
    protocol: { ...known, ...(lacks && { lacks }), ...(refuses && { refuses }), ...(schemas && { schemas }) },
    serves,
    find: (model) => Models.find(model, server)
  }
}

const unknown = (name: string, provider: string): Protocol => ({
  name,
  provider,
  encode: () => "",
  decoder: () => ({ step: () => true, end: () => undefined })
})

export const adjuster = (server: Server): ReturnType<typeof Adjust.adjuster> =>
  Adjust.adjuster(serverOf(server))

export const structuredOutput = (server: Server) => Adjust.abilities(serverOf(server)).structuredOutput

/** Writes requests as a provider does: by the rules of their models, then in a language. */
export const asked = (
  server: Server,
  encode: (question: Question) => string | Reason
): ((request: ModelRequest) => string | Reason) => {
  const adjust = adjuster(server)
  return (request) => {
    const question = adjust(request)
    return isReason(question) ? question : encode(question)
  }
}

/** The question that becomes of a request, which its model can be asked. */
export const questionOf = (server: Server, request: ModelRequest): Question => {
  const question = adjuster(server)(request)
  if (isReason(question)) throw question
  return question
}
