/**
 * The way out through a proxy, as the environment names it.
 *
 * `HTTPS_PROXY` is the proxy for HTTPS, which it tunnels and cannot read. `HTTP_PROXY` is the proxy for HTTP, and for
 * HTTPS where the former is not set. `NO_PROXY` lists hosts that are asked directly, separated by commas: a name and all
 * names below it, with a port or without, or `*` for all hosts. Names in lower case come first. Loopback hosts are asked
 * directly, unless `NO_PROXY` has `<-loopback>`.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import type * as Undici from "@effect/platform-node/Undici"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"

/** Names and values, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Connections for `NodeHttp.layerNoDispatcher` and `NodeHttpClient.makeUndici`, closed with the layer: direct ones, or
 * those of the proxy that `env` names. Default: `process.env`. Where the proxy fails, requests fail with `ProxyFailed`.
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

/** The proxy could not be used. The message has no user and no password of its address. */
export class ProxyFailed extends Error {
  override readonly name = "ProxyFailed"
  /** That of the connection, such as "ECONNREFUSED"; or `ERR_HTTP_PROXY`, `UND_ERR_PRX_CONN`, `ERR_INVALID_PROXY`. */
  readonly code: string
  constructor(message: string, code: string) {
    super(message)
    this.code = code
  }
}

interface Proxy {
  /** Of the variable. */
  readonly name: string
  readonly address: string
}

interface Proxies {
  /** Where there is one for HTTP, there is one for HTTPS. */
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

/** A host and a port are enough. */
const withProtocol = (address: string): string => (address.includes("://") ? address : `http://${address}`)

const make = Effect.fnUntraced(function* (proxies: Proxies, https: Proxy) {
  const undici = yield* Effect.promise(() => import("@effect/platform-node/Undici"))
  const held = <A extends Undici.Dispatcher>(dispatcher: A) =>
    Effect.acquireRelease(Effect.succeed(dispatcher), () => Effect.promise(() => dispatcher.destroy()))
  const direct = yield* held(new undici.Agent())
  const { http, not } = proxies
  const connect = undici.buildConnector({})
  const directFailures = new WeakSet<Error>()
  const wrong = [https, http].find((proxy) => proxy !== undefined && hostOf(proxy) === undefined)
  const through = yield* held(
    wrong === undefined
      ? new undici.EnvHttpProxyAgent({
          httpsProxy: https.address,
          httpProxy: http?.address ?? "",
          noProxy: not,
          // Connects to the hosts of NO_PROXY only: `ProxyAgent` has connectors of its own.
          connect: (to, tell) =>
            connect(to, (...result) => {
              if (result[0] !== null) directFailures.add(result[0])
              tell(...result)
            })
        })
      : new undici.Agent({ connect: (_, tell) => tell(invalid(wrong), null) })
  )
  const isDirect = (url: URL) => isLoopback(url) && !not.includes("<-loopback>")
  return through.compose((dispatch) => (options, handler) => {
    const url = new URL(String(options.origin))
    const proxy = url.protocol === "https:" ? https : http
    if (isDirect(url)) return direct.dispatch(options, handler)
    return dispatch(options, proxy === undefined ? handler : new Explained(handler, proxy, directFailures))
  })
})

const isLoopback = ({ hostname }: URL): boolean =>
  /^(?:(?:.*\.)?localhost\.?|\[::1\]|127(?:\.\d+){3})$/.test(hostname)

/** Protocol, host and port of a proxy; none of an address that is not one. */
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

/** A request through a proxy, with words for what the proxy, and not the server behind it, does wrong. */
class Explained implements Undici.Dispatcher.DispatchHandler {
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
    const failed = this.directFailures.has(error) ? undefined : explained(error, this.proxy)
    this.handler.onResponseError?.(controller, failed ?? error)
  }
}

/** Nothing where the proxy is not to blame. */
const explained = (error: Error, proxy: Proxy): ProxyFailed | undefined => {
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
  // The proxy is the only host that such a request connects to.
  return unreachable.test(code) ? new ProxyFailed(`${at} cannot be reached: ${code}`, code) : undefined
}

const unreachable =
  /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ENOTFOUND|EAI_\w+|UND_ERR_(?:CONNECT_TIMEOUT|PRX_\w+|SOCKS5\w*))$/
