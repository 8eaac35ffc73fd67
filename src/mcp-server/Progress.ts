/**
 * The progress of a call, for a client that wants to know.
 */
import * as McpSchema from "effect/ai/McpSchema"
import type * as McpServer from "effect/ai/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"

/** Sends a message, and waits until it is on its way. */
export type Progress = (message: string) => Effect.Effect<void>

const none: Progress = () => Effect.void

/** The progress of the current request. Does nothing for a request without a token. */
export const make = (
  server: McpServer.McpServer["Service"]
): Effect.Effect<Progress, never, McpSchema.McpRequestContext> =>
  Effect.contextWith((context) => {
    const { requestMetadata } = Context.get(context, McpSchema.McpRequestContext)
    const token = tokenIn(requestMetadata)
    if (token === undefined) return Effect.succeed(none)
    let sent = 0
    const progress: Progress = (message) =>
      Effect.suspend(() =>
        server.notifications["notifications/progress"]({ progressToken: token, progress: ++sent, message })
      ).pipe(Effect.ignore, Effect.provideContext(context))
    return Effect.succeed(progress)
  })

const tokenIn = (metadata: unknown): string | number | undefined => {
  const token = Predicate.hasProperty(metadata, "progressToken") ? metadata.progressToken : undefined
  return typeof token === "string" || typeof token === "number" ? token : undefined
}
