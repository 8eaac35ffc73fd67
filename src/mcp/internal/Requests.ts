/**
 * The requests of a client, over whichever connection there is.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Schema from "effect/Schema"
import type { Calls } from "./Calls.ts"
import type { Connection } from "./Connection.ts"
import * as Content from "./Content.ts"
import { McpError } from "./McpError.ts"
import type { McpClient } from "./Model.ts"

type Request = Connection["request"]

interface Link extends Pick<Connection, "request" | "suspect"> {
  readonly name: string
}

export const make = (link: Link, calls: Calls): Omit<McpClient, "name" | "state" | "states"> => {
  const { request } = link
  return {
    callTool: callTool(link, calls),
    ...ofResources(request),
    prompts: Effect.map(
      request((client, options) => client.listPrompts(undefined, options)),
      ({ prompts }) => prompts
    ),
    prompt: (name, args = {}) =>
      Effect.map(
        request((client, options) => client.getPrompt({ name, arguments: { ...args } }, options)),
        ({ messages }) => messages
      )
  }
}

const callTool =
  ({ name: server, request, suspect }: Link, calls: Calls): McpClient["callTool"] =>
  (name, params, { timeout = "1 minute" } = {}) =>
    calls.during((inbox, silence) => {
      const sent = request(
        (client, options) => client.callTool({ name, arguments: recordOf(params) }, options),
        {
          onprogress: (progress) => {
            Queue.offerUnsafe(inbox, { _tag: "Progress", progress })
          }
        }
      )
      const tooLong = Effect.flatMap(silence(timeout), (limit) => {
        const detail = `no answer and no progress came for ${limit}`
        const error = new McpError({ server, reason: "timeout", detail })
        suspect(error)
        return error
      })
      return Effect.map(Effect.raceFirst(sent, tooLong), Content.outputOf)
    })

const recordOf = (params: Schema.Json): Record<string, unknown> =>
  typeof params === "object" && params !== null ? { ...params } : {}

const ofResources = (
  request: Request
): Pick<McpClient, "resources" | "resourceTemplates" | "readResource"> => ({
  resources: Effect.map(
    request((client, options) => client.listResources(undefined, options)),
    ({ resources }) => resources
  ),
  resourceTemplates: Effect.map(
    request((client, options) => client.listResourceTemplates(undefined, options)),
    ({ resourceTemplates }) => resourceTemplates
  ),
  readResource: (uri) =>
    Effect.map(
      request((client, options) => client.readResource({ uri }, options)),
      ({ contents }) => contents.map(Content.resourceOf)
    )
})
