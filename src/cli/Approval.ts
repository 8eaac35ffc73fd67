/**
 * Who may do what: tools that change something run when a person says so, or when the command line said so before.
 */
import * as Effect from "effect/Effect"
import * as Terminal from "effect/Terminal"
import * as Hook from "../Hook.ts"
import * as Tools from "../tools/Tools.ts"
import * as Preview from "./Preview.ts"
import { Screen } from "./Screen.ts"

export interface Policy {
  /** Run without asking. */
  readonly allow: ReadonlySet<string>
  /** Never run; wins over all else. */
  readonly deny: ReadonlySet<string>
  /** Everything runs without asking. */
  readonly yes: boolean
  /** A person can be asked. Otherwise what would be asked about is refused: a run never waits for nobody. */
  readonly ask: boolean
  /** Where relative paths start. */
  readonly root: string
  /** Done when what leads up to a call is on the screen, so that its question comes last. */
  readonly shown: (toolCallId: string) => Effect.Effect<void>
}

/** How to have refused tools run next time. */
export const advice = (
  { ask, deny }: Pick<Policy, "ask" | "deny">,
  refused: ReadonlyArray<string>
): string => {
  const flags = refused.filter((name) => !deny.has(name)).map((name) => `--allow ${name}`)
  if (flags.length === 0) return "--deny forbids it."
  return ask ? "" : `To let it run give ${flags.join(" ")}, or --yes for every tool.`
}

// A tool nobody has said this of is one that changes something.
const readOnly: ReadonlySet<string> = new Set(Tools.names.filter((name) => !Tools.changing.has(name)))

const approved = { approved: true }
const refused = (reason: string) => ({ approved: false, reason })

/** The guard of a policy. What is answered with "always" stays allowed as long as the hook lives. */
export const hook = ({ allow, ask, deny, root, shown, yes }: Policy) => {
  const allowed = new Set(allow)
  return Hook.approveTool(
    Effect.fnUntraced(function* ({ call: { id, name }, params }) {
      if (deny.has(name)) return refused("--deny forbids it")
      if (yes || allowed.has(name)) return approved
      if (readOnly.has(name)) return undefined
      if (!ask) return refused("it needs approval, and there is nobody to ask")
      yield* shown(id)
      const answer = yield* answerTo(name, params, root)
      if (answer === "always") allowed.add(name)
      return answer === "no" ? refused("the user said no") : approved
    })
  )
}

/** Shows what would happen, and waits for a line. Anything but yes or always, an end of input too, is no. */
const answerTo = Effect.fnUntraced(function* (name: string, params: unknown, root: string) {
  const { err, paint } = yield* Screen
  const { readLine } = yield* Terminal.Terminal
  const [title = name, ...lines] = yield* Preview.of(name, params, root)
  yield* err([paint.bold(title), ...lines.map((line) => `  ${line}`), ""].join("\n"))
  yield* err(`Allow this? [y]es, [N]o, [a]lways for ${name}: `)
  const line = yield* readLine.pipe(
    Effect.onInterrupt(() => err("\n")),
    Effect.catch(() => Effect.as(err("\n"), ""))
  )
  return meaningOf(line.trim().toLowerCase())
})

const meaningOf = (word: string): "yes" | "no" | "always" =>
  word === "y" || word === "yes" ? "yes" : word === "a" || word === "always" ? "always" : "no"
