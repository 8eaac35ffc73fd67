/**
 * The routes for user interfaces: those of clients of the AI SDK, and that of clients of AG-UI.
 *
 * **Details**
 *
 * | route | use |
 * | --- | --- |
 * | `POST /ui/chat` | a prompt or answers of a client of the AI SDK; the response is a UI message stream |
 * | `GET /ui/chat/{chatId}` | the messages of the chat for a page, up to the prompt of a run that has not ended |
 * | `GET /ui/chat/{chatId}/stream` | the run of the chat from its start, 204 if it has none |
 * | `POST /ui/chat/{chatId}/stop` | cancels the run of the chat |
 * | `POST /ag-ui` | a prompt or answers of a client of AG-UI, which gets the conversation that it lacks |
 * | `POST /ag-ui/{threadId}/stop` | cancels the run of the thread |
 *
 * The id of a chat or of a thread is that of the session, and a prompt makes the session if there is none. A prompt ends a run that no page
 * follows any more, and gets 409 while one does. A response ends with the run, or where all of the run waits for a person: the next request brings the answers. Leaving does
 * not cancel a run, unless the request has `?onDisconnect=cancel`.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as AgUiRoutes from "./AgUiRoutes.ts"
import * as ChatRoutes from "./ChatRoutes.ts"
import * as Chats from "./Chats.ts"
import type { Route } from "./Routes.ts"
import { Runs } from "./Runs.ts"

/**
 * Makes the routes.
 *
 * **Example** (Adding the routes to a server)
 *
 * ```ts
 * import { Effect, Layer, Redacted } from "effect"
 * import { Server, UiRoutes } from "effect-agent/server"
 *
 * export const ServerLive = Layer.unwrap(
 *   Effect.map(UiRoutes.make, (routes) => Server.layer({ tokens: [Redacted.make("secret")], routes }))
 * )
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make: Effect.Effect<ReadonlyArray<Route>, never, Runs | Scope.Scope> = Effect.gen(function* () {
  const runs = yield* Runs
  const chats = yield* Chats.make
  return [...ChatRoutes.make(runs, chats), ...AgUiRoutes.make(runs, chats)]
})
