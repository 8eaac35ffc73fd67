/**
 * The sign-in to an MCP server: the person allows it in a browser, which comes back to a port of this machine. The official client finds the
 * server that issues the tokens (RFC 9728, RFC 8414), registers there (RFC 7591), and gets the tokens with PKCE for that resource (RFC 8707).
 */
import type * as Official from "@modelcontextprotocol/client"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { createServer } from "node:http"
import * as FailureText from "../../internal/failureText.ts"
import { Failed, UsageError } from "../ExitCode.ts"
import * as McpConfig from "./McpConfig.ts"
import * as McpTokens from "./McpTokens.ts"

/** How the person takes part. */
export interface Face {
  /** Shows the address that the person is to open. */
  readonly show: (address: string) => Effect.Effect<void>
  /** Whether the program opens a browser. */
  readonly browser: boolean
  /** Lines that the person enters, of which one may be the address that they were sent to. Default: none. */
  readonly lines?: Stream.Stream<string>
}

/** The time in which the person is to sign in. */
const patience = "5 minutes"

/** The time in which a server is to answer. */
const answering = "30 seconds"

/**
 * Signs in to a server, and keeps its tokens. Fails with `UsageError` for a server without a sign-in, and with `Failed` if it is declined, comes
 * too late, or is not as it must be.
 */
export const login = Effect.fnUntraced(function* (given: McpConfig.Given, name: string, face: Face) {
  const one = yield* McpConfig.find(given, name)
  const server = McpConfig.signsIn(one)
  if (server === undefined)
    return yield* new UsageError({
      detail:
        one.entry.url === undefined
          ? `${name} is a program of this machine, and needs no sign-in.`
          : `${name} has its credentials in the headers of the file.`
    })
  yield* McpTokens.set(server, yield* Effect.scoped(granted(one, server, face)))
})

/** Forgets the tokens of a server. Returns whether there were some. Fails with `UsageError` for an unknown server. */
export const logout = Effect.fnUntraced(function* (given: McpConfig.Given, name: string) {
  const server = McpConfig.signsIn(yield* McpConfig.find(given, name))
  return server === undefined ? false : yield* McpTokens.remove(server)
})

const granted = Effect.fnUntraced(function* (one: McpConfig.Named, server: McpTokens.Server, face: Face) {
  const sdk = yield* Effect.promise(() => import("@modelcontextprotocol/client"))
  const { name } = server
  const back = yield* redirect(name, one.entry.oauth?.port ?? 0)
  const found = yield* talk(name, (fetchFn) => discovered(sdk, server, fetchFn))
  const client = yield* clientOf(sdk, one, back.address, found)
  const state = randomBytes(32).toString("base64url")
  const { authorizationUrl, codeVerifier } = yield* talk(name, () =>
    sdk.startAuthorization(found.authorizationServer, {
      ...found.given,
      clientInformation: client,
      redirectUrl: back.address,
      state,
      ...(found.scope === undefined ? {} : { scope: found.scope })
    })
  )
  if (!/^https?:$/.test(authorizationUrl.protocol))
    return yield* failed(name, "the address of the server is none of the web")
  yield* face.show(authorizationUrl.href)
  if (face.browser) yield* browse(authorizationUrl.href)
  const answer = yield* Effect.raceFirst(back.answer, pasted(face)).pipe(
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () => failed(name, `no answer came within ${patience}`)
    })
  )
  const code = yield* codeOf(sdk, name, answer, state, found)
  const secrets = [code, codeVerifier, client.client_secret ?? ""]
  const tokens = yield* talk(
    name,
    (fetchFn) =>
      sdk.exchangeAuthorization(found.authorizationServer, {
        ...found.given,
        clientInformation: client,
        authorizationCode: code,
        ...issuerOf(answer),
        codeVerifier,
        redirectUri: back.address,
        fetchFn
      }),
    secrets
  )
  const { resource } = found.given
  return McpTokens.withTokens(
    {
      authorizationServer: found.authorizationServer,
      client,
      ...(resource === undefined ? {} : { resource })
    },
    tokens
  )
})

const failed = (name: string, reason: string): Effect.Effect<never, Failed> =>
  Effect.fail(new Failed({ detail: `No sign-in to ${name}: ${reason}.` }))

type Sdk = typeof Official

/** Talks to a server. A failure has its words, but for the secrets of the request. */
const talk = <A>(
  name: string,
  send: (fetchFn: Official.FetchLike) => Promise<A>,
  secrets: ReadonlyArray<string> = []
): Effect.Effect<A, Failed> =>
  Effect.tryPromise({
    try: (signal) => send((url, init) => fetch(url, { ...init, signal })),
    catch: (thrown) => {
      const cause =
        thrown instanceof Error && thrown.cause instanceof Error ? `: ${thrown.cause.message}` : ""
      return `${FailureText.firstLine(thrown)}${cause}`
    }
  }).pipe(
    Effect.catch((message) => {
      // A text that is no answer of the protocol stays out: it may repeat the request.
      const [words = ""] = message.split(": Invalid OAuth error response")
      const safe = secrets.reduce(
        (text, secret) => (secret === "" ? text : text.replaceAll(secret, "…")),
        words
      )
      return failed(name, safe.replace(/\.$/, ""))
    }),
    Effect.timeoutOrElse({
      duration: answering,
      orElse: () => failed(name, `the server did not answer within ${answering}`)
    })
  )

// ───────────────────────── The server that issues the tokens

interface Found {
  readonly authorizationServer: string
  readonly given: {
    readonly metadata?: Official.AuthorizationServerMetadata
    readonly resource?: string
  }
  readonly scope: string | undefined
}

/** Asks the MCP server without a token, and reads what it and the server of its tokens say of themselves. */
const discovered = async (
  sdk: Sdk,
  { url }: McpTokens.Server,
  fetchFn: Official.FetchLike
): Promise<Found> => {
  const response = await fetchFn(url, {
    method: "POST",
    headers: { accept: "application/json, text/event-stream", "content-type": "application/json" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 0,
      method: "initialize",
      params: {
        protocolVersion: sdk.LATEST_PROTOCOL_VERSION,
        capabilities: {},
        clientInfo: { name: "effect-agent", version: "0.2.0" }
      }
    })
  })
  await response.body?.cancel()
  const challenge = sdk.extractWWWAuthenticateParams(response)
  const { resourceMetadataUrl } = challenge
  const info = await sdk.discoverOAuthServerInfo(url, {
    fetchFn,
    ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl })
  })
  const { authorizationServerMetadata: metadata, authorizationServerUrl, resourceMetadata } = info
  if (response.status !== 401 && resourceMetadata === undefined)
    return Promise.reject(new Error("the server has none"))
  const configuredResource = resourceMetadata?.resource
  const requestedResource = sdk.resourceUrlFromServerUrl(url)
  if (
    configuredResource !== undefined &&
    !sdk.checkResourceAllowed({ requestedResource, configuredResource })
  )
    return Promise.reject(new Error(`the server says that it is ${configuredResource}`))
  const scope = challenge.scope ?? resourceMetadata?.scopes_supported?.join(" ") ?? ""
  const offline = "offline_access"
  const isOffline =
    metadata?.scopes_supported?.includes(offline) === true && !scope.split(" ").includes(offline)
  return {
    authorizationServer: authorizationServerUrl,
    given: {
      ...(metadata === undefined ? {} : { metadata }),
      ...(configuredResource === undefined ? {} : { resource: configuredResource })
    },
    scope: scope === "" ? undefined : isOffline ? `${scope} ${offline}` : scope
  }
}

/** The client of the file, else one that the server registers now. */
const clientOf = Effect.fnUntraced(function* (
  sdk: Sdk,
  { entry, name }: McpConfig.Named,
  address: string,
  { authorizationServer, given: { metadata }, scope }: Found
): Effect.fn.Return<McpTokens.Grant["client"], Failed | UsageError> {
  if (entry.oauth !== undefined) {
    const { clientId, clientSecret } = entry.oauth
    if (clientSecret === undefined) return { client_id: clientId }
    const { secret } = yield* McpConfig.filled(name, { secret: clientSecret })
    return { client_id: clientId, ...(secret === undefined ? {} : { client_secret: secret }) }
  }
  if (metadata !== undefined && metadata.registration_endpoint === undefined)
    return yield* failed(
      name,
      `the server registers no programs by itself: register one with the address ${address}, and name it as "oauth": {"clientId": "…", "port": N} of the server in the file`
    )
  const methods = metadata?.token_endpoint_auth_methods_supported
  const registered = yield* talk(name, (fetchFn) =>
    sdk.registerClient(authorizationServer, {
      ...(metadata === undefined ? {} : { metadata }),
      ...(scope === undefined ? {} : { scope }),
      clientMetadata: {
        client_name: "effect-agent",
        redirect_uris: [address],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        application_type: "native",
        ...(methods === undefined || methods.includes("none") ? { token_endpoint_auth_method: "none" } : {})
      },
      fetchFn
    })
  )
  const { client_id, client_secret, token_endpoint_auth_method } = registered
  return {
    client_id,
    ...(client_secret === undefined ? {} : { client_secret }),
    ...(token_endpoint_auth_method === undefined ? {} : { token_endpoint_auth_method })
  }
})

// ───────────────────────── The answer of the person

const path = "/callback"

/** Listens at a port of this machine for the browser that comes back, until the scope closes. */
const redirect = Effect.fnUntraced(function* (
  name: string,
  port: number
): Effect.fn.Return<
  { readonly address: string; readonly answer: Effect.Effect<URLSearchParams> },
  Failed,
  Scope.Scope
> {
  const answer = yield* Deferred.make<URLSearchParams>()
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? "", "http://127.0.0.1")
    const isAnswer = url?.pathname === path && request.method === "GET"
    response.writeHead(isAnswer ? 200 : 404, {
      "content-type": "text/plain; charset=utf-8",
      connection: "close"
    })
    response.end(isAnswer ? "You can close this page, and go back to effect-agent." : "Not found.")
    if (isAnswer) Deferred.doneUnsafe(answer, Effect.succeed(url.searchParams))
  })
  const listening = Effect.callback<number, string>((resume) => {
    server.once("error", ({ message }) => resume(Effect.fail(message)))
    server.listen(port, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : port))
    })
  })
  const open = yield* Effect.acquireRelease(listening, () =>
    Effect.sync(() => {
      server.close()
      server.closeAllConnections()
    })
  ).pipe(Effect.catch((message) => failed(name, message)))
  return { address: `http://127.0.0.1:${open}${path}`, answer: Deferred.await(answer) }
})

/** The answer in an address that the person pastes. Other lines are no answer. */
const pasted = ({ lines = Stream.empty }: Face): Effect.Effect<URLSearchParams> =>
  lines.pipe(
    Stream.map((line) => URL.parse(line.trim())?.searchParams ?? new URLSearchParams()),
    Stream.filter((answer) => answer.has("state")),
    Stream.runHead,
    Effect.flatMap(Option.match({ onNone: () => Effect.never, onSome: Effect.succeed }))
  )

const issuerOf = (answer: URLSearchParams) => {
  const iss = answer.get("iss")
  return iss === null ? {} : { iss }
}

/** The code of an answer to this request, from the server that got it. */
const codeOf = Effect.fnUntraced(function* (
  sdk: Sdk,
  name: string,
  answer: URLSearchParams,
  state: string,
  { given: { metadata } }: Found
) {
  if (answer.get("state") !== state)
    return yield* failed(name, "the state of the answer is not that of the request")
  yield* Effect.try({
    try: () =>
      sdk.validateAuthorizationResponseIssuer({
        iss: answer.get("iss") ?? undefined,
        expectedIssuer: metadata?.issuer,
        issParameterSupported: metadata?.["authorization_response_iss_parameter_supported"] === true
      }),
    catch: () =>
      new Failed({ detail: `No sign-in to ${name}: the answer is not of the issuer ${metadata?.issuer}.` })
  })
  const error = answer.get("error")
  const description = answer.get("error_description")
  if (error !== null)
    return yield* failed(name, `it was declined: ${error}${description === null ? "" : `, ${description}`}`)
  return answer.get("code") ?? (yield* failed(name, "the answer has no code"))
})

/** Opens an address in the browser of the person, if there is one. It is no child that this process waits for, and has no terminal. */
const browse = (address: string): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const [program, ...args] = browsers[process.platform] ?? ["xdg-open"]
    const child = spawn(program, [...args, address], { detached: true, stdio: "ignore" })
    child.once("spawn", () => resume(Effect.void))
    child.once("error", () => resume(Effect.void))
    child.unref()
  })

const browsers: Partial<Record<NodeJS.Platform, readonly [program: string, ...args: ReadonlyArray<string>]>> =
  {
    darwin: ["open"],
    win32: ["rundll32", "url.dll,FileProtocolHandler"]
  }
