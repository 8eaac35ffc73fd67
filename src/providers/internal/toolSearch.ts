/** Tools that a request defers: the model gets them when it searches for them at the vendor. */
import { memoize } from "effect/Function"
import type { ModelRequest, ToolDefinition } from "../../Provider.ts"
import * as Address from "./address.ts"
import type { Changes } from "./changes.ts"
import type { Rule } from "./models/rule.ts"
import type { Server } from "./server.ts"

/** Makes a function that returns whether the server lets the model of a request search for tools. */
export const served =
  (server: Server) =>
  ({ model }: Pick<ModelRequest, "model">): boolean =>
    isServed(server, server.find(model))

/** The server alone decides for a protocol that says nothing of it. */
const isServed = ({ protocol, serves }: Server, rule: Rule | undefined): boolean =>
  serves.toolSearch === true &&
  (protocol.toolSearch === undefined || (protocol.toolSearch && rule?.toolSearch === true))

/** The tools of a request, none deferred where the server lets the model search for none, and not the one that it must call. */
export const declared = (
  changes: Changes,
  server: Server,
  rule: Rule | undefined,
  { options, tools }: Pick<ModelRequest, "options" | "tools">
): ModelRequest["tools"] => {
  if (!tools.some(isDeferred)) return tools
  if (!isServed(server, rule)) {
    changes.report("deferred", true, null, "The model cannot search for tools here, so it gets all of them.")
    return tools.map(present)
  }
  const { toolChoice } = options
  return typeof toolChoice === "object" ? presentIf(tools, (name) => name === toolChoice.name) : tools
}

export const isDeferred = ({ deferred }: ToolDefinition): boolean => deferred === true

/** The tools, those of some names not deferred. */
export const presentIf = (
  tools: ModelRequest["tools"],
  is: (name: string) => boolean
): ModelRequest["tools"] => tools.map((tool) => (isDeferred(tool) && is(tool.name) ? present(tool) : tool))

const present = memoize(({ deferred: _deferred, ...tool }: ToolDefinition): ToolDefinition => tool)

/** Whether an address is that of a vendor, who lets models search, and not that of a server in its place. */
export const isAt = (host: string, baseUrl: string): boolean => {
  const [base] = Address.parts(baseUrl)
  const { hostname } = URL.canParse(base) ? new URL(base) : { hostname: "" }
  return hostname === host || hostname.endsWith(`.${host}`)
}
