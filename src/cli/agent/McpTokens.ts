/**
 * What a sign-in to an MCP server gave: its tokens, and the client that the server knows. The system's keyring has it where there is one that
 * works, else `mcp-tokens.json` in the program's data. No other process gets it but the server and those that issue its tokens.
 */
import type * as Official from "@modelcontextprotocol/client"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as SessionHome from "../../sessions/SessionHome.ts"
import { UsageError } from "../ExitCode.ts"
import * as PrivateFile from "../settings/PrivateFile.ts"
import * as SystemKeyring from "./SystemKeyring.ts"

const text = Schema.optionalKey(Schema.String)

const Grant = Schema.Struct({
  /** The server that issues the tokens. */
  authorizationServer: Schema.String,
  /** The resource that the tokens are for, as the MCP server names it. */
  resource: text,
  client: Schema.Struct({ client_id: Schema.String, client_secret: text, token_endpoint_auth_method: text }),
  access_token: Schema.String,
  refresh_token: text
})

/** The result of a sign-in. */
export type Grant = typeof Grant.Type

/** A server: tokens of an address do not go to another one that takes its name. */
export interface Server {
  readonly name: string
  readonly url: string
}

const keyOf = ({ name, url }: Server): string => `${name} ${url}`

/** The values of the file: a grant, or that the keyring has it. Without a sign-in, no run asks the keyring, which may be locked. */
const entries = PrivateFile.records(Schema.Union([Grant, Schema.Literal("keyring")]))

const encode = Schema.encodeSync(Schema.fromJsonString(Grant))
const decode = Schema.decodeOption(Schema.fromJsonString(Grant))

/** The file of the tokens, which may not exist. */
export const file = Effect.mapError(
  Effect.flatMap(SessionHome.home, (home) =>
    Effect.map(Path.Path, (path) => path.resolve(home, "mcp-tokens.json"))
  ),
  ({ message }) => new UsageError({ detail: message })
)

/** The tokens of a server, `undefined` if there are none. */
export const find = Effect.fnUntraced(function* (server: Server) {
  const key = keyOf(server)
  const all = yield* Effect.flatMap(file, entries.read)
  const entry = Object.hasOwn(all, key) ? all[key] : undefined
  return entry === "keyring"
    ? Option.getOrUndefined(Option.flatMap(yield* SystemKeyring.find(key), decode))
    : entry
})

/** Keeps the tokens of a server. */
export const set = Effect.fnUntraced(function* (server: Server, grant: Grant) {
  const path = yield* file
  yield* PrivateFile.locked(path, put(path, server, grant))
})

/** Forgets the tokens of a server. Returns whether there were some. */
export const remove = Effect.fnUntraced(function* (server: Server) {
  const path = yield* file
  const key = keyOf(server)
  const forget = Effect.gen(function* () {
    const before = yield* entries.put(path, key, undefined)
    if (before === "keyring") yield* SystemKeyring.remove(key)
    return before !== undefined
  })
  return yield* PrivateFile.locked(path, forget)
})

const put = Effect.fnUntraced(function* (path: string, server: Server, grant: Grant) {
  const key = keyOf(server)
  const isKept = yield* SystemKeyring.set(key, encode(grant))
  yield* entries.put(path, key, isKept ? "keyring" : grant)
})

// ───────────────────────── The tokens of a connection

/**
 * Gives the requests of a connection their token, and gets a new one where the server no longer takes it. Of several processes one gets it, for
 * all.
 */
export const provider = Effect.fnUntraced(function* (
  server: Server
): Effect.fn.Return<Official.AuthProvider, UsageError, FileSystem.FileSystem | Path.Path> {
  const run = Effect.runPromiseWith(yield* Effect.context<FileSystem.FileSystem | Path.Path>())
  const { UnauthorizedError } = yield* Effect.promise(() => import("@modelcontextprotocol/client"))
  const path = yield* file
  const one = Semaphore.makeUnsafe(1)
  let grant = yield* find(server)
  /** Gets another token than the refused one. */
  const renewed = Effect.fnUntraced(function* (refused: string | undefined) {
    if (grant !== undefined && grant.access_token !== refused) return
    const stored = yield* find(server)
    if (stored !== undefined && stored.access_token !== refused) {
      grant = stored
      return
    }
    if (stored?.refresh_token === undefined) return yield* Effect.fail(new UnauthorizedError())
    const { refresh_token, ...rest } = stored
    const next = yield* refreshed(stored, refresh_token)
    // A token for new ones that no longer counts is not used again.
    grant = next ?? rest
    yield* put(path, server, grant)
    if (next === undefined) return yield* Effect.fail(new UnauthorizedError())
  })
  return {
    token: () => Promise.resolve(grant?.access_token),
    onUnauthorized: () => {
      const refused = grant?.access_token
      return run(one.withPermit(PrivateFile.locked(path, renewed(refused))))
    }
  }
})

/** The longest time in which a server must give new tokens. */
const patience = "30 seconds"

/** A grant with new tokens, `undefined` where the server gives none for it. Fails where the server cannot be reached. */
const refreshed = Effect.fnUntraced(function* (grant: Grant, refreshToken: string) {
  const { authorizationServer, client, resource } = grant
  const sdk = yield* Effect.promise(() => import("@modelcontextprotocol/client"))
  return yield* Effect.tryPromise({
    try: async (signal): Promise<Grant> => {
      const fetchFn: Official.FetchLike = (url, init) => fetch(url, { ...init, signal })
      const metadata = await sdk.discoverAuthorizationServerMetadata(authorizationServer, { fetchFn })
      const tokens = await sdk.refreshAuthorization(authorizationServer, {
        ...(metadata === undefined ? {} : { metadata }),
        ...(resource === undefined ? {} : { resource }),
        clientInformation: client,
        refreshToken,
        fetchFn
      })
      return withTokens(grant, tokens)
    },
    // The text of a failure may have parts of the request.
    catch: (thrown) => (isRefusal(sdk, thrown) ? ("refused" as const) : ("unreachable" as const))
  }).pipe(
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail("unreachable" as const) }),
    Effect.catch((fault) =>
      fault === "refused" ? Effect.undefined : Effect.fail(new Error("its tokens cannot be renewed now"))
    )
  )
})

const isRefusal = (sdk: typeof Official, thrown: unknown): boolean =>
  sdk.OAuthError.isInstance(thrown) && refusals.has(thrown.code)

/** Others, such as `temporarily_unavailable`, may pass. */
const refusals: ReadonlySet<string> = new Set(["invalid_grant", "invalid_client", "unauthorized_client"])

/** A grant with the tokens of an answer. */
export const withTokens = (
  grant: Omit<Grant, "access_token" | "refresh_token">,
  { access_token, refresh_token }: Official.OAuthTokens
): Grant => ({ ...grant, access_token, ...(refresh_token === undefined ? {} : { refresh_token }) })
