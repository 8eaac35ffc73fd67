/**
 * The telemetry of runs: spans, metrics and log annotations, by OpenTelemetry's conventions for generative AI.
 *
 * **Details**
 *
 * A run is a span `invoke_agent {agent}`, a model call is a span `chat {model}`, and a tool call is a span `execute_tool {tool}`. They go
 * to Effect's `Tracer`, and the spans of a run that a tool starts are within the span of the tool. A call that does not run has a span
 * too, without duration. Metrics go to Effect's `Metric`. With Effect's default tracer, which exports nothing, a run has spans only
 * inside a span of the application.
 *
 * - Attributes of spans: `gen_ai.operation.name`, `gen_ai.provider.name`, `gen_ai.agent.*` (option `agent` of a run),
 *   `gen_ai.conversation.id` (option `modelOptions.sessionId`), `gen_ai.request.*`, `gen_ai.response.*`, `gen_ai.usage.*`,
 *   `gen_ai.output.type`, `gen_ai.tool.*`, `server.address`, `server.port` and `error.type`. Additions to the conventions:
 *   `effect_agent.run.id`, `effect_agent.run.status`, `effect_agent.run.turns`, `effect_agent.turn`, `effect_agent.usage.cost`,
 *   `effect_agent.tool.outcome`, `effect_agent.tool.trust` and, in the background, `effect_agent.tool.background`.
 * - Each phase of a run that begins is an event `effect_agent.phase` of the span of the run, with the attribute `effect_agent.run.phase`:
 *   see `AgentEvent.Phase`.
 * - Each attempt that a retry follows is an event `effect_agent.retry` of the span of its model call.
 * - `error.type` is the tag of the error: that of the reason of a `ProviderError`, such as `RateLimited`, and the outcome of a tool call,
 *   such as `timeout`. The span is an error then. Cancelled work has the type `cancelled`, and its span is no error.
 * - Metrics: `gen_ai.client.token.usage`, `gen_ai.client.operation.duration`, `gen_ai.client.operation.time_to_first_chunk`,
 *   `gen_ai.invoke_agent.duration`, `gen_ai.invoke_agent.inference_calls`, `gen_ai.invoke_agent.tool_calls` and
 *   `gen_ai.execute_tool.duration`. Durations are in seconds. `effect_agent.circuit.transitions` counts the changes of a `CircuitBreaker`.
 * - Logs of a run are annotated with `effect_agent.run.id`, those of a tool call also with `gen_ai.tool.call.id`.
 *
 * The conventions are not stable, so names may change in a minor release.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"

/**
 * Whether spans have the content of a run: system prompts, messages, tool definitions, and the arguments and results of tools.
 *
 * **Details**
 *
 * Default `false`, since content may be private and is large. The bytes of images and files are always left out. The effect-agent program
 * sets it with the environment variable `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true`.
 *
 * **Example** (Tracing a run with its content)
 *
 * ```ts
 * import { Effect, Tracer } from "effect"
 * import { Agent, Telemetry } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const spans: Array<Tracer.Span> = []
 * const tracer = Tracer.make({
 *   span: (options) => {
 *     const span = new Tracer.NativeSpan(options)
 *     spans.push(span)
 *     return span
 *   }
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini", agent: { name: "poet" } })
 *   yield* agent.prompt("Hello")
 * }).pipe(
 *   Effect.scoped,
 *   Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Hi")])),
 *   Effect.provideService(Telemetry.CaptureContent, true),
 *   Effect.provideService(Tracer.Tracer, tracer)
 * )
 *
 * await Effect.runPromise(program)
 * for (const { attributes, name } of spans) console.log(name, attributes.get("gen_ai.input.messages"))
 * // => invoke_agent poet [{"role":"user","parts":[{"type":"text","content":"Hello"}]}]
 * // => chat gpt-5.4-mini [{"role":"user","parts":[{"type":"text","content":"Hello"}]}]
 * ```
 *
 * @since 0.2.0
 * @category services
 */
export const CaptureContent: Context.Reference<boolean> = Context.Reference<boolean>(
  "effect-agent/Telemetry/CaptureContent",
  { defaultValue: () => false }
)
