/**
 * The HTTP client, loaded with the first request, so that an answer without network starts faster, and the export of telemetry.
 *
 * Telemetry goes over OTLP if OpenTelemetry's environment variables name a collector. Their defaults are those of OpenTelemetry, and the name of
 * the service is `effect-agent`.
 */
import * as Cause from "effect/Cause"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as HttpClient from "effect/http/HttpClient"
import { CaptureContent } from "../../Telemetry.ts"
import * as Inert from "../terminal/Inert.ts"
import { Screen } from "../terminal/Screen.ts"
import type { Environment } from "./Vendors.ts"

export const http: Layer.Layer<HttpClient.HttpClient> = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("../../node/NodeHttp.ts")),
    (module) => module.layer
  )
)

/** Reports a setting that is no setting on the screen, and exports nothing then. */
export const telemetry = (env: Environment): Layer.Layer<never, never, Screen> =>
  endpoints.some((name) => (env[name] ?? "") !== "")
    ? Layer.merge(Layer.catchCause(exporter(env), complain), Layer.succeed(CaptureContent, isCaptured(env)))
    : Layer.empty

const endpoints = ["", "_TRACES", "_METRICS", "_LOGS"].map((signal) => `OTEL_EXPORTER_OTLP${signal}_ENDPOINT`)

/** Loads the exporter when it is needed. */
const exporter = (env: Environment): Layer.Layer<never> =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() =>
        Promise.all([import("effect/observability/Otlp"), import("effect/observability/OtlpSerialization")])
      ),
      ([{ layerFromConfig }, { layerJson }]) => Layer.provide(layerFromConfig(), layerJson)
    )
  ).pipe(Layer.provide([http, ConfigProvider.layer(ConfigProvider.fromEnv({ env: withDefaults(env) }))]))

const withDefaults = (env: Environment): Record<string, string> => {
  const defaults = {
    OTEL_SERVICE_NAME: "effect-agent",
    OTEL_TRACES_EXPORTER: "otlp",
    OTEL_METRICS_EXPORTER: "otlp",
    OTEL_LOGS_EXPORTER: "otlp"
  }
  const set = Object.entries(env).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, value] as const]
  )
  return { ...defaults, ...Object.fromEntries(set) }
}

/** OpenTelemetry's libraries for Python name a mode, where its other libraries take a boolean. */
const isCaptured = (env: Environment): boolean =>
  /^(true|span_only|span_and_event)$/i.test(env["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] ?? "")

const complain = (cause: Cause.Cause<never>): Layer.Layer<never, never, Screen> =>
  Layer.effectDiscard(
    Screen.use(({ err, paint }) => {
      const squashed = Cause.squash(cause)
      const reason = squashed instanceof Error ? squashed.message : String(squashed)
      return err(`${paint.red("effect-agent:")} the telemetry is not exported: ${Inert.line(reason)}\n`)
    })
  )
