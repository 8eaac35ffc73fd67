/**
 * The schema of a request for the body of `POST /model/stream`.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ModelMessage, VendorMembers } from "../../Message.ts"
import type * as Provider from "../../Provider.ts"
import { ModelOptions } from "../../RunOptions.ts"

const ToolDefinition: Schema.Codec<Provider.ToolDefinition> = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  parameters: Schema.Json,
  strict: Schema.optionalKey(Schema.Boolean),
  deferred: Schema.optionalKey(Schema.Boolean),
  inputExamples: Schema.optionalKey(Schema.Array(Schema.Record(Schema.String, Schema.Json))),
  allowedCallers: Schema.optionalKey(Schema.Array(Schema.Literals(["direct", "programmatic"]))),
  vendor: Schema.optionalKey(VendorMembers)
})

/** Clients may leave out tools and options. */
const orElse = <S extends Schema.Top>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

export const ModelRequest = Schema.Struct({
  model: Schema.String,
  system: Schema.optionalKey(Schema.String),
  messages: Schema.Array(ModelMessage),
  tools: orElse(Schema.Array(ToolDefinition), []),
  options: orElse(ModelOptions, {})
})

export const Body = Schema.Struct({ request: ModelRequest })
