/**
 * The library behind the door of the fault kit, as its users get it: one prompt, the kit's tools, the events read one by
 * one, and the defaults of `layerConfig`. Only the clocks for silence are set, as the kit's own cap is shorter.
 *
 * The kit's folder is in `FAULT_KIT`: it forks this file without arguments.
 */
import { Cause, ConfigProvider, Effect, Exit, Layer, type Schema, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, AgentEvent, Tool } from "effect-agent"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type { Words } from "./words.ts"

/** Who speaks a face, the name of its key, and what follows the origin in its address. */
interface Face {
  readonly layerConfig: (
    options: Pick<OpenAi.Options, "baseUrl" | "timeouts">
  ) => ReturnType<typeof OpenAi.layerConfig>
  readonly keyName: string
  readonly path: string
}

const openAiChat: Face["layerConfig"] = (options) =>
  OpenAiCompatible.layerConfig(OpenAiCompatible.presets.openAi, options)

const faces: Readonly<Record<Order["face"], Face>> = {
  oai: { layerConfig: openAiChat, keyName: "OPENAI_API_KEY", path: "/v1" },
  ant: { layerConfig: Anthropic.layerConfig, keyName: "ANTHROPIC_API_KEY", path: "" },
  rsp: { layerConfig: OpenAi.layerConfig, keyName: "OPENAI_API_KEY", path: "/v1" },
  gem: { layerConfig: Google.layerConfig, keyName: "GEMINI_API_KEY", path: "" }
}

const { serve }: Words = await import(
  pathToFileURL(join(process.env["FAULT_KIT"] ?? "", "workers/harness.mjs")).href
)

/** The run is over: with an answer, or because somebody left it. */
interface Ended {
  readonly text: string
  readonly finish: string
  readonly aborted?: boolean
}

/** What the kit's harness asks for, as its PROTOCOL.md says. */
interface Order {
  readonly face: "oai" | "ant" | "rsp" | "gem"
  readonly model: string
  readonly baseUrl: string
  readonly apiKey: string
  readonly signal: AbortSignal
  readonly tools: ReadonlyArray<{
    readonly name: string
    readonly description: string
    readonly parameters: Schema.Json
    readonly execute: (args: unknown) => Promise<unknown>
  }>
  /** To be awaited for each event, with its text. `true`: read no more. */
  readonly onDelta: (text: string) => Promise<boolean>
  readonly stopped: () => boolean
}

const run = async (order: Order): Promise<Ended> => {
  const program = Effect.scoped(agentRun(order)).pipe(Effect.provide(services(order)))
  const exit = await Effect.runPromiseExit(program, { signal: order.signal })
  if (Exit.isSuccess(exit)) return order.stopped() ? { text: "", finish: "broke" } : exit.value
  if (Cause.hasInterruptsOnly(exit.cause)) return { text: "", finish: "cancelled", aborted: true }
  throw Cause.squash(exit.cause)
}

/** The provider of the face, with its key from the environment, as applications have it. */
const services = ({ apiKey, baseUrl, face }: Order) => {
  const { keyName, layerConfig, path } = faces[face]
  const timeouts = { firstByte: "5 seconds", idle: "5 seconds" } as const
  const environment = ConfigProvider.layer(ConfigProvider.fromUnknown({ [keyName]: apiKey }))
  return Layer.provide(layerConfig({ baseUrl: `${baseUrl}${path}`, timeouts }), [
    FetchHttpClient.layer,
    environment
  ])
}

const agentRun = Effect.fnUntraced(function* ({ model, onDelta, tools }: Order) {
  const agent = yield* Agent.make({ model, tools: tools.map((tool) => Tool.fromPromise(tool)) })
  let ended: Ended = { text: "", finish: "" }
  yield* Stream.runForEachWhile(agent.stream("go"), (event) => {
    ended = after(ended, event)
    const delta = AgentEvent.isTextDelta(event) ? event.delta.delta : ""
    return Effect.promise(async () => !(await onDelta(delta)))
  })
  return ended
})

/** The last answer, and why the run ended: by that answer, or as its status says. */
const after = (ended: Ended, event: AgentEvent.AgentEvent): Ended => {
  if (event._tag === "RunEnd" && event.status !== "completed") return { ...ended, finish: event.status }
  if (event._tag !== "MessageEnd" || event.message.role !== "assistant") return ended
  const { content, stopReason } = event.message
  const text = content.map((block) => (block.type === "text" ? block.text : "")).join("")
  return { text, finish: stopReason }
}

serve(run, { render: (error: unknown) => Cause.pretty(Cause.fail(error)) })
