/** Effect's OTLP exporter, configured by OpenTelemetry's environment variables. */
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Otlp from "effect/observability/Otlp"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"

export const layer: Layer.Layer<never, never, HttpClient.HttpClient> = Layer.provide(
  Otlp.layerFromConfig(),
  OtlpSerialization.layerJson
)
