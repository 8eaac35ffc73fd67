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
import * as Keyring from "./Keyring.ts"

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

const grants = PrivateFile.records(Grant)

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
  const kept = Option.flatMap(yield* Keyring.find(key), decode)
  if (Option.isSome(kept)) return kept.value
  const all = yield* Effect.flatMap(file, grants.read)
  return Object.hasOwn(all, key) ? all[key] : undefined
})

/** Keeps the tokens of a server. */
export const set = Effect.fnUntraced(function* (server: Server, grant: Grant) {
  const path = yield* file
  yield* PrivateFile.locked(path, put(path, server, grant))
})

/** Forgets the tokens of a server. Returns whether there were some. */
export const remove = Effect.fnUntraced(function* (server: Server) {
  const path = yield* file
  const isKept = yield* Keyring.remove(keyOf(server))
  const isFiled = yield* PrivateFile.locked(path, grants.put(path, keyOf(server), undefined))
  return isKept || isFiled
})

const put = Effect.fnUntraced(function* (path: string, server: Server, grant: Grant) {
  const key = keyOf(server)
  const isKept = yield* Keyring.set(key, encode(grant))
  yield* grants.put(path, key, isKept ? undefined : grant)
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
    grant = yield* refreshed(stored, refresh_token)
    // A token for new ones that no longer counts is not used again.
    yield* put(path, server, grant ?? rest)
    if (grant === undefined) return yield* Effect.fail(new UnauthorizedError())
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
    catch: (thrown) => thrown
  }).pipe(
    Effect.timeout(patience),
    Effect.catch((thrown) =>
      sdk.OAuthError.isInstance(thrown) && thrown.code !== sdk.OAuthErrorCode.ServerError
        ? Effect.undefined
        : // The text of the failure may have parts of the request.
          Effect.fail(new Error("its tokens cannot be renewed now"))
    )
  )
})

/** A grant with the tokens of an answer. */
export const withTokens = (
  grant: Omit<Grant, "access_token" | "refresh_token">,
  { access_token, refresh_token }: Official.OAuthTokens
): Grant => ({ ...grant, access_token, ...(refresh_token === undefined ? {} : { refresh_token }) })
