/**
 * What an application exports. `consumer.slow.test.ts` compiles this file in a project with `declaration: true`.
 */
import { Effect, Layer, Schema, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, AgentEvent, Hook, Loop, Message, Tool, ToolRegistry } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import * as Provider from "effect-agent/Provider"
import { Anthropic, LocalRules, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { Fallback, Retry } from "effect-agent/resilience"
import { Cassette, ScriptedProvider } from "effect-agent/testing"
import { Tools } from "effect-agent/tools"
import { z } from "zod"

export const weather = Tool.make({
  name: "weather",
  description: "The weather in a city, now.",
  params: Schema.Struct({ city: Schema.String }),
  execute: ({ city }) => Effect.succeed(`4 °C and rain in ${city}`)
})
export const plainWeather = Tool.fromPromise({
  name: "weather",
  description: "The weather in a city, now.",
  params: z.object({ city: z.string() }),
  execute: async ({ city }) => `4 °C and rain in ${city}`
})
export const files = Tools.make({ root: "." })
export const registry = ToolRegistry.layer(weather)

export const audit = Hook.afterTool(({ call, outcome }) => Effect.log(`${call.name}: ${outcome}`))
export const guard = Hook.approveTool(({ call }) => Effect.succeed({ approved: call.name !== "remove" }))

export const openAi = OpenAi.layerConfig()
export const groq = OpenAiCompatible.layerConfig(OpenAiCompatible.presets.groq)
export const { groq: preset } = OpenAiCompatible.presets
export const standIn = Layer.succeed(Provider.Provider, LocalRules.provider)
export const either = Fallback.layer([Retry.layer()(Anthropic.layerConfig()), standIn])
export const online = Layer.provide(either, FetchHttpClient.layer)
export const recorded = Cassette.layer({ directory: "cassettes", mode: "replay" })
export const scripted = ScriptedProvider.layer([ScriptedProvider.text("Yes.")])
export const router = Provider.router

export const makeAgent = Agent.make({ model: "gpt-5-mini", tools: [weather], hooks: [audit, guard] })
export const answer = Effect.gen(function* () {
  const agent = yield* makeAgent
  return yield* agent.prompt("Do I need a coat in Oslo?")
})
export const answerText = answer.pipe(
  Effect.map(({ newMessages }) => newMessages.map(Message.textOf).join("")),
  Effect.catchTag("RunFailed", ({ reason }) => Effect.succeed(reason.message))
)
export const failure = Effect.flip(answer)
export const events = Stream.unwrap(
  Effect.map(makeAgent, (agent) => agent.stream("Do I need a coat in Oslo?"))
)
export const text = AgentEvent.textOnly(events)
export const rawEvents = Loop.stream("Do I need a coat in Oslo?", { messages: [] }, { model: "gpt-5-mini" })
export const state = Effect.map(makeAgent, (agent) => agent.state)
export const sizes = Effect.flatMap(makeAgent, (agent) => agent.queues.sizes)

export const promiseAgent = createAgent({
  provider: openAi,
  model: "gpt-5-mini",
  tools: [plainWeather],
  hooks: { beforeTool: async ({ call }) => ({ block: call.name === "remove" }) }
})
export const promisedText = promiseAgent.streamText("Do I need a coat in Oslo?")
export const promisedRun = promiseAgent.start("Do I need a coat in Oslo?")
export const promiseState = promiseAgent.state
export const promiseTools = promiseAgent.tools
export const promiseHooks = promiseAgent.hooks
export const unsubscribe = promiseAgent.on("tool:start", ({ toolCall }) => toolCall.function.name)
export const promisedResult = promiseAgent.prompt("Do I need a coat in Oslo?")
export const reviewer = createAgent({
  provider: openAi,
  model: "gpt-5-mini",
  output: z.object({ grade: z.number() })
})
export const review = reviewer.prompt("Review it.")
export const grade: Promise<number> = review.then(({ output }) => output.grade)
export const check = reviewer.start("Check it.", { output: Schema.Struct({ ok: Schema.Boolean }) })
export const promisedEvents = promiseAgent.stream("Do I need a coat in Oslo?")
