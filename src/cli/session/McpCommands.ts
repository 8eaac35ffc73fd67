/** The command `/mcp`: the MCP servers of the session, their sign-in, and their connections. */
import * as Effect from "effect/Effect"
import { UsageError } from "../ExitCode.ts"
import * as Inert from "../terminal/Inert.ts"
import type { Session } from "./Session.ts"

const load = Effect.promise(() =>
  Promise.all([import("../agent/McpServers.ts"), import("../agent/McpSignIn.ts")])
)

/** Lists the servers, or signs in to one, out of one, or connects to it again. */
export const mcp = Effect.fnUntraced(function* (session: Session, args: string) {
  const { servers, url } = session.place
  if (servers === undefined)
    return session.say(url === undefined ? "No MCP servers." : "The server has its own MCP servers.")
  const [McpServers, McpSignIn] = yield* load
  const lineOf = (status: Parameters<typeof McpServers.lineOf>[0]) => McpServers.lineOf(status, "/mcp login")
  const [action = "", name = ""] = args.split(/\s+/)
  const { settings } = session
  switch (action) {
    case "": {
      const all = yield* servers.list
      return session.say(...(all.length === 0 ? ["No MCP servers."] : all.map(lineOf)))
    }
    case "reconnect":
      return session.say(lineOf(yield* servers.reconnect(name)))
    case "logout": {
      const isRemoved = yield* McpSignIn.logout(settings, name)
      yield* servers.reconnect(name)
      return session.say(isRemoved ? `Signed out of ${name}.` : `There was no sign-in to ${name}.`)
    }
    case "login": {
      const show = (address: string) =>
        Effect.sync(() => session.say("Open this address:", Inert.line(address, 4_000)))
      const signedIn = Effect.gen(function* () {
        yield* McpSignIn.login(settings, name, { browser: true, show })
        session.say(`Signed in to ${name}.`, lineOf(yield* servers.reconnect(name)))
      })
      return session.busy(`Signing in to ${Inert.line(name, 40)}`, signedIn)
    }
    default:
      return yield* new UsageError({ detail: "Give /mcp, or /mcp login, logout or reconnect, and a name." })
  }
})
