/** An MCP server that wants a sign-in, and the server that issues its tokens, on loopback. */
import { Effect, type Scope } from "effect"
import { createHash, randomUUID } from "node:crypto"
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"

/** How the server differs from a good one. */
export interface Faults {
  /** Changes the answer that the browser brings back. */
  readonly answer?: (answer: URLSearchParams) => void
  /** The issuer that the metadata names. Default: the right one. */
  readonly issuer?: string
  /** The resource that the metadata names. Default: the right one. */
  readonly resource?: string
  readonly registers?: boolean
  /** The answer to a request for tokens, in place of the right one. */
  readonly token?: { readonly status: number; readonly body: string }
}

/** The server, and what it has seen. */
export interface OAuth {
  readonly url: string
  readonly origin: string
  faults: Faults
  /** All secrets that it has issued. */
  readonly secrets: Array<string>
  /** The tokens that count. */
  readonly valid: Set<string>
  /** Requests for tokens, by their grants. */
  readonly grants: Array<string>
  /** Registered clients. */
  readonly clients: Map<string, ReadonlyArray<string>>
}

export const serve: Effect.Effect<OAuth, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.promise(async () => {
      const state = made()
      const server = createServer(async (request, response) => {
        let body = ""
        for await (const chunk of request.setEncoding("utf8")) body += chunk
        respond(state, request, body, response)
      }).listen(0, "127.0.0.1")
      await once(server, "listening")
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const origin = `http://127.0.0.1:${port}`
      Object.assign(state, { origin, url: `${origin}/mcp` })
      return { server, state }
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  ),
  ({ state }) => state
)

interface Asked {
  readonly clientId: string
  readonly redirect: string
  readonly challenge: string
}

interface State extends OAuth {
  readonly codes: Map<string, Asked>
  readonly refreshTokens: Map<string, string>
}

const made = (): State => ({
  url: "",
  origin: "",
  faults: {},
  secrets: [],
  valid: new Set(),
  grants: [],
  clients: new Map(),
  codes: new Map(),
  refreshTokens: new Map()
})

const json = (response: ServerResponse, body: unknown, status = 200) => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify(body))
}

const respond = (state: State, request: IncomingMessage, body: string, response: ServerResponse): void => {
  const { faults, origin } = state
  const url = new URL(request.url ?? "/", origin)
  switch (url.pathname) {
    case "/.well-known/oauth-protected-resource/mcp":
      return json(response, {
        resource: faults.resource ?? state.url,
        authorization_servers: [origin],
        scopes_supported: ["tools"]
      })
    case "/.well-known/oauth-authorization-server":
      return json(response, {
        issuer: faults.issuer ?? origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        ...(faults.registers === false ? {} : { registration_endpoint: `${origin}/register` }),
        response_types_supported: ["code"],
        grant_types_supported: ["authorization_code", "refresh_token"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["none"],
        authorization_response_iss_parameter_supported: true
      })
    case "/register":
      return register(state, JSON.parse(body), response)
    case "/authorize":
      return authorize(state, url.searchParams, response)
    case "/token":
      return token(state, new URLSearchParams(body), response)
    case "/mcp":
      return mcp(state, request, body, response)
    default:
      return json(response, { error: "not_found" }, 404)
  }
}

const register = (
  { clients }: State,
  asked: { readonly redirect_uris: ReadonlyArray<string> },
  response: ServerResponse
): void => {
  const client_id = randomUUID()
  clients.set(client_id, asked.redirect_uris)
  json(response, { ...asked, client_id }, 201)
}

const authorize = (state: State, asked: URLSearchParams, response: ServerResponse): void => {
  const clientId = asked.get("client_id") ?? ""
  const redirect = asked.get("redirect_uri") ?? ""
  const challenge = asked.get("code_challenge") ?? ""
  const isFine =
    (state.clients.get(clientId)?.includes(redirect) ?? false) &&
    asked.get("response_type") === "code" &&
    asked.get("code_challenge_method") === "S256" &&
    challenge !== "" &&
    (asked.get("state") ?? "") !== "" &&
    asked.get("resource") === state.url
  if (!isFine) return json(response, { error: "invalid_request" }, 400)
  const code = secret(state, "code")
  state.codes.set(code, { clientId, redirect, challenge })
  const answer = new URLSearchParams({ code, state: asked.get("state") ?? "", iss: state.origin })
  state.faults.answer?.(answer)
  response.writeHead(302, { location: `${redirect}?${answer}` }).end()
}

const secret = ({ secrets }: State, kind: string): string => {
  const made = `${kind}-${randomUUID()}`
  secrets.push(made)
  return made
}

const token = (state: State, asked: URLSearchParams, response: ServerResponse): void => {
  const grant = asked.get("grant_type") ?? ""
  state.grants.push(grant)
  const { token } = state.faults
  if (token !== undefined) {
    response.writeHead(token.status, { "content-type": "application/json" }).end(token.body)
    return
  }
  const isFine =
    asked.get("resource") === state.url &&
    (grant === "authorization_code" ? isRedeemed(state, asked) : isRefreshed(state, asked))
  if (!isFine) return json(response, { error: "invalid_grant" }, 400)
  const access = secret(state, "access")
  const refresh = secret(state, "refresh")
  state.valid.add(access)
  state.refreshTokens.set(refresh, asked.get("client_id") ?? "")
  json(response, { access_token: access, token_type: "Bearer", expires_in: 3600, refresh_token: refresh })
}

const isRedeemed = ({ codes }: State, asked: URLSearchParams): boolean => {
  const code = asked.get("code") ?? ""
  const found = codes.get(code)
  codes.delete(code)
  const verifier = asked.get("code_verifier") ?? ""
  return (
    found !== undefined &&
    found.clientId === asked.get("client_id") &&
    found.redirect === asked.get("redirect_uri") &&
    found.challenge === createHash("sha256").update(verifier).digest("base64url")
  )
}

/** A refresh token counts once. */
const isRefreshed = ({ refreshTokens }: State, asked: URLSearchParams): boolean => {
  const refresh = asked.get("refresh_token") ?? ""
  const client = refreshTokens.get(refresh)
  refreshTokens.delete(refresh)
  return client !== undefined && client === asked.get("client_id")
}

const tools = [{ name: "now", description: "The time.", inputSchema: { type: "object" } }]

const mcp = (
  { origin, valid }: State,
  request: IncomingMessage,
  body: string,
  response: ServerResponse
): void => {
  const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? ""
  if (!valid.has(given)) {
    const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`
    response.writeHead(401, { "www-authenticate": `Bearer resource_metadata="${metadata}"` }).end()
    return
  }
  if (request.method !== "POST") {
    response.writeHead(405).end()
    return
  }
  const { id, method, params } = JSON.parse(body)
  if (id === undefined) {
    response.writeHead(202).end()
    return
  }
  const reply = (result: unknown) => json(response, { jsonrpc: "2.0", id, result })
  switch (method) {
    case "initialize":
      return reply({
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "clock", version: "1" }
      })
    case "tools/list":
      return reply({ tools })
    case "tools/call":
      return reply({ content: [{ type: "text", text: "12:00" }] })
    case "ping":
      return reply({})
    default:
      return json(response, { jsonrpc: "2.0", id, error: { code: -32_601, message: "unknown" } })
  }
}
