/**
 * Ollama's own API as a protocol, with the package alone: https://docs.ollama.com/api/chat
 */
import { type Layer, Option, Schema } from "effect"
import type { HttpClient } from "effect/http"
import { Message, ProviderError, type Provider, Usage } from "effect-agent"
import { Auth, Framing, Protocol, Transport } from "effect-agent/providers"

const Call = Schema.Struct({ function: Schema.Struct({ name: Schema.String, arguments: Schema.Json }) })

/** One line of an answer. */
const Line = Schema.Struct({
  model: Schema.String,
  message: Schema.optionalKey(
    Schema.Struct({
      content: Schema.optionalKey(Schema.String),
      thinking: Schema.optionalKey(Schema.String),
      tool_calls: Schema.optionalKey(Schema.Array(Call))
    })
  ),
  done: Schema.Boolean,
  done_reason: Schema.optionalKey(Schema.String),
  prompt_eval_count: Schema.optionalKey(Schema.Finite),
  eval_count: Schema.optionalKey(Schema.Finite)
})
const lineOf = Schema.decodeUnknownOption(Line)

const imagesOf = (message: Message.User | Message.ToolResult) =>
  message.content.flatMap((block) =>
    block.type === "image" && "data" in block.source ? [block.source.data] : []
  )

const thinkingOf = (message: Message.Assistant) =>
  message.content.flatMap((block) => (block.type === "thinking" ? [block.text] : [])).join("")

const toMessage = (message: Message.ModelMessage) => {
  const content = Message.textOf(message)
  switch (message.role) {
    case "user":
      return { role: "user", content, images: imagesOf(message) }
    case "assistant":
      return {
        role: "assistant",
        content,
        thinking: thinkingOf(message),
        tool_calls: Message.toolCalls(message).map(({ name, params = {} }) => ({
          function: { name, arguments: params }
        }))
      }
    case "toolResult":
      return { role: "tool", content, tool_name: message.toolName, images: imagesOf(message) }
  }
}

const encode = ({ messages, model, options, system, thinkingLevel, tools, vendor }: Protocol.Question) => {
  const hasFile = messages.some(({ content }) => content.some(({ type }) => type === "file"))
  if (hasFile) return new ProviderError.UnsupportedContent({ detail: "Ollama takes no files" })
  return JSON.stringify({
    model,
    messages: [
      ...(system === undefined ? [] : [{ role: "system", content: system }]),
      ...messages.map(toMessage)
    ],
    tools: tools.map(({ description, name, parameters }) => ({
      type: "function",
      function: { name, description, parameters }
    })),
    // `JSON.stringify` leaves out what is undefined.
    think: thinkingLevel === undefined ? undefined : thinkingLevel !== "off",
    format: options.output?.schema,
    options: {
      num_predict: options.maxTokens,
      temperature: options.temperature,
      top_p: options.topP,
      seed: options.seed,
      stop: options.stop
    },
    ...vendor
  })
}

const decoder: Protocol.Protocol["decoder"] = (call, reply) => {
  let last: typeof Line.Type | undefined
  return {
    step: (frame) => {
      const json = Protocol.readObject(frame, call)
      if (Protocol.isReason(json)) return json
      const line = Option.getOrUndefined(lineOf(json))
      if (line === undefined) return new ProviderError.Protocol({ kind: "badShape", detail: "Not a line" })
      const { content = "", thinking = "", tool_calls: calls = [] } = line.message ?? {}
      reply.name({ responseModel: line.model })
      reply.thinking(thinking)
      reply.text(content)
      for (const { function: called } of calls)
        reply.openCall(undefined, called.name).write(JSON.stringify(called.arguments))
      if (line.done) last = line
      return line.done
    },
    end: () => {
      if (last === undefined) return new ProviderError.StreamTruncated({ detail: "No line is the last one" })
      const { done_reason: reason, eval_count: output = 0, prompt_eval_count: input = 0 } = last
      reply.finish({
        stopReason: reason === "length" ? "length" : "stop",
        usage: Usage.make({ input, output })
      })
      return undefined
    }
  }
}

const lacks = ["hostedTools", "logprobs", "parallelToolCalls", "toolChoice"] as const
const protocol: Protocol.Protocol = { name: "ollama-chat", provider: "ollama", lacks, encode, decoder }

export const layer = (url: string): Layer.Layer<Provider.Provider, never, HttpClient.HttpClient> =>
  Transport.layer({
    protocol,
    framing: Framing.ndjson,
    deployment: { url: () => `${url}/api/chat`, auth: Auth.none, serves: { takesSchema: true } }
  })
