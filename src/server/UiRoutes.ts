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
import type { AiSdkUi } from "../ai-sdk-ui/index.ts"
import type { EventError } from "../Run.ts"
import * as AgUiRoutes from "./internal/AgUiRoutes.ts"
import * as ChatRoutes from "./internal/ChatRoutes.ts"
import * as Following from "../runs/Following.ts"
import * as PlainFailures from "./internal/PlainFailures.ts"
import type { Route } from "./Routes.ts"
import { Runs } from "../runs/Runs.ts"

/**
 * The options of the routes.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options extends Pick<AiSdkUi.Options, "dynamic"> {
  /**
   * The words that end users read about a failure of a run; `undefined` stands for the failure of an earlier answer. Default: a plain
   * sentence without addresses, keys and advice for the operator, who has the cause in the log of the server.
   */
  readonly failureWords?: (error: EventError | undefined) => string
}

/**
 * Makes the routes.
 *
 * **When to use**
 *
 * `Server.layer` has them. Use it for a server of your own, or to change one.
 *
 * **Example** (Adding the routes to a list)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { UiRoutes } from "effect-agent/server"
 *
 * export const routes = Effect.map(UiRoutes.makeWith({ dynamic: true }), (routes) =>
 *   routes.filter(({ path }) => path.startsWith("/ui/"))
 * )
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const makeWith = (options: Options): Effect.Effect<ReadonlyArray<Route>, never, Runs | Scope.Scope> =>
  Effect.gen(function* () {
    const runs = PlainFailures.of(yield* Runs, options.failureWords ?? PlainFailures.plain)
    const chats = yield* Following.makeChats
    return [...ChatRoutes.make(runs, chats, options), ...AgUiRoutes.make(runs, chats)]
  })

/**
 * Makes the routes with default options.
 *
 * **Example** (Listing the routes)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { UiRoutes } from "effect-agent/server"
 *
 * export const paths = Effect.map(UiRoutes.make, (routes) => routes.map(({ path }) => path))
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make: Effect.Effect<ReadonlyArray<Route>, never, Runs | Scope.Scope> = makeWith({})
