/**
 * A call that the vendor runs once it is approved, such as that of a tool of an MCP server at OpenAI. The run treats it as a call of a
 * tool that only says yes: hooks, the approval policy and persons decide about it, and its result is the answer to the vendor.
 */
import * as Effect from "effect/Effect"
import * as JsonSchema from "./jsonSchema.ts"
import type { ToolCall } from "../Message.ts"
import * as Tool from "../Tool.ts"
import type { PreparedCall } from "../ToolRegistry.ts"
import type * as Schema from "effect/Schema"

/** The tool of such a call. It may say yes again, but is no reader: the vendor's tool may have effects. */
export const tool = ({ name }: Pick<ToolCall, "name">): Tool.Any => ({
  name,
  description: "A tool that the vendor runs.",
  parameters: {},
  effect: "idempotent",
  decode: (input) => Effect.succeed(input),
  execute: () => Effect.succeed("Approved.")
})

/** The call with the params that the model gave it. Those that another replaced, the vendor cannot take: `undefined`. */
export const prepared = (call: ToolCall, input?: Schema.Json): PreparedCall | undefined => {
  const { params = {} } = call
  return input === undefined || JsonSchema.same(input, params)
    ? { call, tool: tool(call), input: params, params: structuredClone(params) }
    : undefined
}
