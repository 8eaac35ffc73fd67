/** The commands `mcp login`, `mcp logout` and `mcp list`. */
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import type { McpLine } from "../CommandLine.ts"
import * as ExitCode from "../ExitCode.ts"
import * as Settings from "../settings/Settings.ts"
import * as SettingTable from "../settings/SettingTable.ts"
import * as Inert from "../terminal/Inert.ts"
import { say, Screen } from "../terminal/Screen.ts"
import type { Environment } from "../agent/Vendors.ts"
import * as McpServers from "../agent/McpServers.ts"
import * as McpSignIn from "../agent/McpSignIn.ts"

/** Runs the command and returns its exit code. */
export const run = Effect.fnUntraced(function* (line: McpLine, env: Environment) {
  const { out } = yield* Screen
  const { cwd, mcpConfig } = line
  const { remarks, settings } = yield* Settings.read({ ...SettingTable.absent, cwd, mcpConfig }, env)
  yield* say(remarks)
  if (line.action === "list") yield* list(settings, line.json)
  else if (line.action === "login") {
    yield* McpSignIn.login(settings, line.name, yield* faceOf(line.noBrowser))
    yield* out(`Signed in to ${Inert.line(line.name)}.\n`)
  } else {
    const isForgotten = yield* McpSignIn.logout(settings, line.name)
    yield* out(
      isForgotten
        ? `Signed out of ${Inert.line(line.name)}.\n`
        : `There was no sign-in to ${Inert.line(line.name)}.\n`
    )
  }
  return ExitCode.answered
}, Effect.scoped)

const faceOf = Effect.fnUntraced(function* (noBrowser: boolean) {
  const { err, out } = yield* Screen
  const { stdin } = yield* Stdio.Stdio
  const lines = stdin.pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.catch(() => Stream.empty)
  )
  const hint = "Or paste the address that you were sent to, and press Enter.\n"
  const face: McpSignIn.Face = {
    show: (address) =>
      Effect.andThen(
        out(`Open this address:\n${Inert.text(address)}\n`),
        noBrowser ? err(hint) : Effect.void
      ),
    browser: !noBrowser,
    ...(noBrowser ? { lines } : {})
  }
  return face
})

/** Connects to each server, and writes its state. */
const list = Effect.fnUntraced(function* (settings: Settings.Settings, json: boolean) {
  const { err, out, paint } = yield* Screen
  // The list has what the lines of a run would say.
  const servers = yield* McpServers.open(settings, "", () => Effect.void)
  yield* servers.settled
  const items = yield* servers.list
  if (json) return yield* out(Inert.json({ items }))
  if (items.length === 0) yield* err(paint.dim("There are no MCP servers: --mcp-config FILE.\n"))
  yield* out(items.map((item) => `${McpServers.lineOf(item, "effect-agent mcp login")}\n`).join(""))
})
