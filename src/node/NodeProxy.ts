/**
 * Connections through the proxy that environment variables specify.
 *
 * - `HTTPS_PROXY`: the proxy for HTTPS requests. It forwards encrypted connections and cannot read them.
 * - `HTTP_PROXY`: the proxy for HTTP requests, and for HTTPS requests if `HTTPS_PROXY` is not set.
 * - `NO_PROXY`: hosts to connect to directly, separated by commas. A name, with or without a port, also matches
 *   all names below it. `*` matches all hosts.
 *
 * Lower-case variables win over upper-case ones. Connections to loopback hosts are direct, unless `NO_PROXY`
 * contains `<-loopback>`.
 *
 * @since 0.2.0
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import type * as Undici from "@effect/platform-node/Undici"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"

/**
 * Environment variables by name, as in `process.env`.
 *
 * @since 0.2.0
 * @category models
 */
export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Makes the layer of an undici `Dispatcher` that uses the proxy of `env` (default: `process.env`).
 *
 * **When to use**
 *
 * Use with `NodeHttp.layerNoDispatcher` or `NodeHttpClient.makeUndici`, for a proxy other than that of the
 * process. `NodeHttp.layer` includes this layer.
 *
 * **Details**
 *
 * The dispatcher connects directly if `env` specifies no proxy. It is closed with the layer. If the proxy
 * fails, requests fail with `ProxyFailed`, and so do all requests if a variable does not contain the address of
 * a proxy.
 *
 * **Example** (Setting a proxy)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { HttpClient } from "effect/http"
 * import { NodeHttp, NodeProxy } from "effect-agent/node"
 *
 * const http = NodeHttp.layerNoDispatcher.pipe(
 *   Layer.provide(NodeProxy.layerDispatcher({ HTTPS_PROXY: "http://proxy.example:8080" }))
 * )
 *
 * const program = Effect.map(HttpClient.HttpClient, (client) => typeof client.execute)
 * console.log(await Effect.runPromise(program.pipe(Effect.provide(http)))) // => function
 * ```
 *
 * @since 0.2.0
 * @category layers
 */
export const layerDispatcher = (env: Environment = process.env): Layer.Layer<NodeHttpClient.Dispatcher> =>
  Layer.unwrap(
    Effect.sync(() => {
      const proxies = proxiesOf(env)
      return proxies.https === undefined
        ? NodeHttpClient.layerDispatcher
        : Layer.effect(NodeHttpClient.Dispatcher, make(proxies, proxies.https))
    })
  )

/**
 * The proxy failed, not the server behind it.
 *
 * The message contains neither user nor password of the proxy.
 *
 * **Example** (Reading the code)
 *
 * ```ts
 * import { NodeProxy } from "effect-agent/node"
 *
 * const error = new NodeProxy.ProxyFailed("The proxy cannot be reached", "ECONNREFUSED")
 * console.log(error.name, error.code) // => ProxyFailed ECONNREFUSED
 * ```
 *
 * @since 0.2.0
 * @category errors
 */
export class ProxyFailed extends Error {
  override readonly name = "ProxyFailed"
  /**
   * The code of the connection, such as `ECONNREFUSED`, or `ERR_HTTP_PROXY`, `UND_ERR_PRX_CONN` or
   * `ERR_INVALID_PROXY`.
   */
  readonly code: string
  constructor(message: string, code: string) {
    super(message)
    this.code = code
  }
}

interface Proxy {
  /** The name of the environment variable. */
  readonly name: string
  readonly address: string
}

interface Proxies {
  /** Defined whenever `http` is. */
  readonly https: Proxy | undefined
  readonly http: Proxy | undefined
  readonly not: string
}

const proxiesOf = (env: Environment): Proxies => {
  const valueOf = (name: string): string => env[name]?.trim() ?? ""
  const proxy = (...names: ReadonlyArray<string>): Proxy | undefined => {
    const name = names.find((name) => valueOf(name) !== "")
    return name === undefined ? undefined : { name, address: withProtocol(valueOf(name)) }
  }
  const http = proxy("http_proxy", "HTTP_PROXY")
  const not = valueOf("no_proxy") === "" ? valueOf("NO_PROXY") : valueOf("no_proxy")
  return { https: proxy("https_proxy", "HTTPS_PROXY") ?? http, http, not }
}

/** Adds the protocol to an address of host and port only. */
const withProtocol = (address: string): string => (address.includes("://") ? address : `http://${address}`)

const make = Effect.fnUntraced(function* (proxies: Proxies, https: Proxy) {
  const undici = yield* Effect.promise(() => import("@effect/platform-node/Undici"))
  const scoped = <A extends Undici.Dispatcher>(dispatcher: A) =>
    Effect.acquireRelease(Effect.succeed(dispatcher), () => Effect.promise(() => dispatcher.destroy()))
  const direct = yield* scoped(new undici.Agent())
  const { http, not } = proxies
  const connect = undici.buildConnector({})
  const directFailures = new WeakSet<Error>()
  const wrong = [https, http].find((proxy) => proxy !== undefined && hostOf(proxy) === undefined)
  const through = yield* scoped(
    wrong === undefined
      ? new undici.EnvHttpProxyAgent({
          httpsProxy: https.address,
          httpProxy: http?.address ?? "",
          noProxy: not,
          // Connects to the hosts of NO_PROXY only, because `ProxyAgent` has its own connectors.
          connect: (to, callback) =>
            connect(to, (...result) => {
              if (result[0] !== null) directFailures.add(result[0])
              callback(...result)
            })
        })
      : new undici.Agent({ connect: (_, callback) => callback(invalid(wrong), null) })
  )
  const isDirect = (url: URL) => isLoopback(url) && !not.includes("<-loopback>")
  return through.compose((dispatch) => (options, handler) => {
    const url = new URL(String(options.origin))
    const proxy = url.protocol === "https:" ? https : http
    if (isDirect(url)) return direct.dispatch(options, handler)
    return dispatch(options, proxy === undefined ? handler : new ProxyHandler(handler, proxy, directFailures))
  })
})

const isLoopback = ({ hostname }: URL): boolean =>
  /^(?:(?:.*\.)?localhost\.?|\[::1\]|127(?:\.\d+){3})$/.test(hostname)

/** Protocol, host and port of a proxy, `undefined` for an invalid address. */
const hostOf = ({ address }: Proxy): string | undefined => {
  const url = URL.parse(address)
  if (url === null || !/^(?:https?|socks5?):$/.test(url.protocol) || url.hostname === "") return undefined
  return [url.username, url.password].every(isDecodable) ? `${url.protocol}//${url.host}` : undefined
}

const isDecodable = (text: string): boolean => !/%(?![0-9a-f]{2})/i.test(text)

const invalid = ({ name }: Proxy): ProxyFailed =>
  new ProxyFailed(
    `${name} is not the address of a proxy. Set it to one such as http://proxy.example:8080, with % and @ in a ` +
      "password as %25 and %40",
    "ERR_INVALID_PROXY"
  )

/** A handler that replaces failures of the proxy by `ProxyFailed`. */
class ProxyHandler implements Undici.Dispatcher.DispatchHandler {
  private readonly handler: Undici.Dispatcher.DispatchHandler
  private readonly proxy: Proxy
  /** Failures to connect to a host of NO_PROXY. */
  private readonly directFailures: WeakSet<Error>

  constructor(handler: Undici.Dispatcher.DispatchHandler, proxy: Proxy, directFailures: WeakSet<Error>) {
    this.handler = handler
    this.proxy = proxy
    this.directFailures = directFailures
  }

  onRequestStart(
    ...args: Parameters<NonNullable<Undici.Dispatcher.DispatchHandler["onRequestStart"]>>
  ): void {
    this.handler.onRequestStart?.(...args)
  }

  onRequestUpgrade(
    ...args: Parameters<NonNullable<Undici.Dispatcher.DispatchHandler["onRequestUpgrade"]>>
  ): void {
    this.handler.onRequestUpgrade?.(...args)
  }

  onResponseStart(
    ...args: Parameters<NonNullable<Undici.Dispatcher.DispatchHandler["onResponseStart"]>>
  ): void {
    this.handler.onResponseStart?.(...args)
  }

  onResponseData(
    ...args: Parameters<NonNullable<Undici.Dispatcher.DispatchHandler["onResponseData"]>>
  ): void {
    this.handler.onResponseData?.(...args)
  }

  onResponseEnd(...args: Parameters<NonNullable<Undici.Dispatcher.DispatchHandler["onResponseEnd"]>>): void {
    this.handler.onResponseEnd?.(...args)
  }

  onResponseError(controller: Undici.Dispatcher.DispatchController, error: Error): void {
    const failed = this.directFailures.has(error) ? undefined : failureOf(error, this.proxy)
    this.handler.onResponseError?.(controller, failed ?? error)
  }
}

/** The failure of the proxy, `undefined` for another failure. */
const failureOf = (error: Error, proxy: Proxy): ProxyFailed | undefined => {
  const at = `The proxy ${hostOf(proxy) ?? ""} of ${proxy.name}`
  const [, status = ""] = /^Proxy (?:response|Authentication Required) \((\d+)\)/.exec(error.message) ?? []
  if (status === "407")
    return new ProxyFailed(`${at} asks for a user and a password, or refuses those it got`, "ERR_HTTP_PROXY")
  if (status !== "")
    return new ProxyFailed(
      `${at} answers ${status} and does not connect`,
      Number(status) < 500 ? "ERR_HTTP_PROXY" : "UND_ERR_PRX_CONN"
    )
  const code = Predicate.hasProperty(error, "code") && typeof error.code === "string" ? error.code : ""
  // A request through a proxy connects to no other host.
  return unreachable.test(code) ? new ProxyFailed(`${at} cannot be reached: ${code}`, code) : undefined
}

const unreachable =
  /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ENOTFOUND|EAI_\w+|UND_ERR_(?:CONNECT_TIMEOUT|PRX_\w+|SOCKS5\w*))$/
