/**
 * Routes through which clients ask models with the keys of the server: `POST /model/stream` for `ProxyProvider`, and `POST /api/stream`
 * for pi's `streamProxy`.
 *
 * **Details**
 *
 * They stand behind the guards of the server, and beside its sessions: the client has the tools and the transcript.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import * as ModelStream from "../proxy/ModelStream.ts"
import * as PiStream from "../proxy/PiStream.ts"
import { Provider } from "../Provider.ts"
import * as Routes from "./Routes.ts"

export type { Options } from "../proxy/ModelStream.ts"

/**
 * Makes the routes for the provider of the application.
 *
 * **Details**
 *
 * `models` are the ids of the models that clients may ask: the server refuses others with 403. The ids are those of the provider, such as
 * `"openai/gpt-5.4-mini"` for a router.
 *
 * **Example** (Serving a proxy)
 *
 * ```ts
 * import { LocalRules } from "effect-agent/providers"
 * import { ProxyRoutes, type Server } from "effect-agent/server"
 * import { Redacted } from "effect"
 *
 * const options: Server.Options = {
 *   tokens: [Redacted.make("the token of the server")],
 *   routes: ProxyRoutes.make(LocalRules.provider, { models: ["rules"] })
 * }
 *
 * console.log(options.routes?.map(({ path }) => path)) // => [ '/model/stream', '/api/stream' ]
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (
  provider: Provider["Service"],
  options: ModelStream.Options
): ReadonlyArray<Routes.Route> => {
  const route = (
    path: Routes.Route["path"],
    handler: ReturnType<typeof ModelStream.handler>,
    summary: string
  ) => {
    const described = { body: "json", summary, responses: { 200: "text/event-stream" } } as const
    return Routes.make("POST", path, Effect.provideService(handler, Provider, provider), described)
  }
  return [
    route(
      "/model/stream",
      ModelStream.handler(options),
      "Asks a model, and streams the events of its answer."
    ),
    route(
      "/api/stream",
      PiStream.handler(options),
      "Asks a model for a client of pi's proxy, and streams its answer."
    )
  ]
}
