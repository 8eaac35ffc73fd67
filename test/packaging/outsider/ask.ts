/**
 * An application whose agent has a tool, and any provider.
 */
import { Effect, Layer, Schema } from "effect"
import { FetchHttpClient, type HttpClient } from "effect/http"
import { Agent, Message, type Provider, type Run, type RunOptions, Tool } from "effect-agent"

const weather = Tool.make({
  name: "weather",
  description: "The weather in a city, now.",
  params: Schema.Struct({ city: Schema.String }),
  execute: ({ city }) => Effect.succeed(`4 °C and rain in ${city}`)
})

const failureOf = ({ reason }: Run.RunFailed) =>
  reason._tag === "ProviderError"
    ? { failure: reason.reason._tag, message: reason.message }
    : { failure: reason._tag, message: reason.message }

/** The text, the thinking and the tool results of a run, or its failure. */
export const ask = (
  provider: Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>,
  modelOptions: RunOptions.ModelOptions = {}
): Promise<object> =>
  Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "small", system: "Be brief.", tools: [weather], modelOptions })
    const { newMessages, usage } = yield* agent.prompt("Do I need a coat in Oslo?")
    const thinking = newMessages.flatMap(({ role, ...message }) =>
      role === "assistant" && "content" in message
        ? message.content.flatMap((block) => (block.type === "thinking" ? [block.text] : []))
        : []
    )
    return { texts: newMessages.map(Message.textOf), thinking, tokens: usage.total }
  }).pipe(
    Effect.scoped,
    Effect.catchTag("RunFailed", (error) => Effect.succeed(failureOf(error))),
    Effect.provide(provider.pipe(Layer.provide(FetchHttpClient.layer))),
    Effect.runPromise
  )
