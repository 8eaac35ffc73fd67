/** The parts of the context of a session, in tokens. */
import * as Effect from "effect/Effect"
import * as Tokens from "../../context/Tokens.ts"
import * as Contents from "./Contents.ts"
import * as Footer from "./Footer.ts"
import type { Session } from "./Session.ts"

/** The lines of `/context`: five parts, which add up to the total. */
export const lines = Effect.fnUntraced(function* (session: Session) {
  const { context, model, place, settings } = session
  const messages = session.isMade ? yield* Contents.messages(place.runs, session.id) : []
  const count = Tokens.ofMessages(yield* Tokens.Tokens, messages)
  const results = Tokens.ofMessages(
    yield* Tokens.Tokens,
    messages.filter(({ role }) => role === "toolResult")
  )
  const agent = place.agent === undefined || !session.isMade ? undefined : yield* place.agent(session.id)
  const files = place.project?.contextFiles ?? []
  const memory = files.reduce((sum, { text }) => sum + Tokens.estimate(text), 0)
  const whole = agent === undefined ? "" : (agent.state.getUnsafe().options.system ?? "")
  const system = Math.max(0, Tokens.estimate(typeof whole === "string" ? whole : "") - memory)
  const definitions = agent === undefined ? [] : yield* agent.tools.definitions
  const tools = definitions.length === 0 ? 0 : Tokens.estimate(JSON.stringify(definitions))
  const parts = [
    ["System prompt", system],
    ["Tools", tools],
    [
      `Memory files${files.length === 0 ? "" : ` (${files.map(({ path }) => nameOf(path, settings.cwd)).join(", ")})`}`,
      memory
    ],
    ["Messages", count - results],
    ["Tool results", results]
  ] as const
  const total = parts.reduce((sum, [, tokens]) => sum + tokens, 0)
  const window = Footer.windowOf(model)
  const width = Math.max(...parts.map(([name]) => name.length), 13)
  const row = (name: string, words: string) => `${name.padEnd(width)}  ${words}`
  const measured = context > 0 ? ` The last request and its answer had ${context}.` : ""
  return [
    // A server does not say what it adds to each request.
    ...parts.map(([name, tokens], index) =>
      row(name, place.url !== undefined && index < 3 ? "unknown" : `~${tokens}`)
    ),
    row("Free", window === undefined ? "unknown" : `~${Math.max(0, window - total)}`),
    window === undefined
      ? `Total ~${total} tokens. The window of ${model} is not known.${measured}`
      : `Total ~${total} of ${window} tokens (${Math.round((100 * total) / window)} %).${measured}`
  ]
})

const nameOf = (path: string, cwd: string): string =>
  path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path
