/**
 * Finds a model server on this machine, at the default ports.
 *
 * Most ports refuse the connection immediately. Only servers that listen get a request for their models.
 */
import * as Arr from "effect/Array"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { connect } from "node:net"
import * as Network from "./Network.ts"
import { type Environment, type Local, servers } from "./Vendors.ts"

/** A server that answered, and one of its models. */
interface Found {
  readonly server: Local
  readonly model: string
  readonly address: string
}

/** Time limit of a connection, which the system answers. */
const connectTimeout = "200 millis"
/** Time limit of the request for the models. The server and this machine may be busy. */
const modelsTimeout = "1 second"

/** The first server, in the order of `Vendors.servers`, that has a model. All are requested in parallel. */
export const find = Effect.fnUntraced(function* (env: Environment) {
  const listening = yield* Effect.filter(servers, (server) => isListening(new URL(server.baseUrl(env))), {
    concurrency: "unbounded"
  })
  if (listening.length === 0) return Option.none<Found>()
  const found = yield* Effect.forEach(listening, (server) => modelOf(server, env), {
    concurrency: "unbounded"
  }).pipe(Effect.provide(Network.http))
  return Option.firstSomeOf(found)
})

/** A `URL` has no port if it is the default of its protocol. */
export const portOf = ({ port, protocol }: URL): number =>
  port === "" ? (protocol === "https:" ? 443 : 80) : Number(port)

const isLoopback = ({ hostname }: URL): boolean =>
  hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d+){3}$/.test(hostname)

const isListening = (url: URL): Effect.Effect<boolean> =>
  isLoopback(url)
    ? Effect.callback<boolean>((resume) => {
        const socket = connect({ host: url.hostname.replace(/^\[|\]$/g, ""), port: portOf(url) })
        const settle = (listens: boolean) => {
          socket.destroy()
          resume(Effect.succeed(listens))
        }
        socket.once("connect", () => settle(true))
        socket.once("error", () => settle(false))
        return Effect.sync(() => socket.destroy())
      }).pipe(within(connectTimeout), Effect.map(Option.getOrElse(() => false)))
    : Effect.succeed(false)

const within =
  (patience: Duration.Input) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<Option.Option<A>, never, R> =>
    Effect.option(Effect.timeout(effect, patience))

const Models = Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String })) })

/** The ids of the models of a server. None if it does not answer. */
export const idsAt = (address: string): Effect.Effect<Option.Option<ReadonlyArray<string>>> =>
  idsOf(address).pipe(within(modelsTimeout), Effect.provide(Network.http))

const idsOf = (address: string) =>
  Effect.map(requestJson(HttpClientRequest.get(`${address}/models`), Models), ({ data }) =>
    data.map(({ id }) => id)
  )

const modelOf = (
  server: Local,
  env: Environment
): Effect.Effect<Option.Option<Found>, never, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const address = server.baseUrl(env)
    // Embedding models cannot answer.
    const ids = (yield* idsOf(address)).filter((id) => !/embed/i.test(id))
    const able = server.id === "ollama" ? yield* withTools(new URL(address).origin, ids) : ids
    return Option.map(Arr.head(able), (model): Found => ({ server, model, address }))
  }).pipe(within(modelsTimeout), Effect.map(Option.flatten))

const Shown = Schema.Struct({ capabilities: Schema.Array(Schema.String) })

/**
 * Ollama rejects tools for models that do not support them. A model without this information counts as
 * supporting tools.
 */
const withTools = (origin: string, ids: ReadonlyArray<string>) =>
  Effect.filter(
    ids.slice(0, 16),
    (model) =>
      requestJson(
        HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post(`${origin}/api/show`), { model }),
        Shown
      ).pipe(
        Effect.map(({ capabilities }) => capabilities.includes("tools")),
        Effect.orElseSucceed(() => true)
      ),
    { concurrency: "unbounded" }
  )

const requestJson = <A>(request: HttpClientRequest.HttpClientRequest, schema: Schema.Codec<A, unknown>) =>
  HttpClient.execute(request).pipe(
    Effect.flatMap((response) => response.json),
    Effect.flatMap(Schema.decodeUnknownEffect(schema))
  )
