/**
 * Who may do what: tools that change something run when a person says so, or when the command line said so before.
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Hook from "../Hook.ts"
import * as Tools from "../tools/Tools.ts"
import * as Inert from "./Inert.ts"
import { Keyboard } from "./Keyboard.ts"
import * as Preview from "./Preview.ts"
import { Screen } from "./Screen.ts"

export interface Policy {
  /** Run without asking. */
  readonly allow: ReadonlySet<string>
  /** Never run; wins over all else. */
  readonly deny: ReadonlySet<string>
  /** Everything runs without asking. */
  readonly yes: boolean
  /** A person can be asked. Otherwise what would be asked about is refused: a run never waits for an answer that cannot come. */
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

// Every other tool may change something.
const readOnly: ReadonlySet<string> = new Set(Tools.names.filter((name) => !Tools.changing.has(name)))

const approved = { approved: true }
const refused = (reason: string) => ({ approved: false, reason })

/**
 * The guard of a policy. The answer "always" allows this command, or changes of this path by this tool, as long as the
 * hook lives; all else is asked about again.
 */
export const hook = ({ allow, ask, deny, root, shown, yes }: Policy) => {
  const always = new Set<string>()
  return Hook.approveTool(
    Effect.fnUntraced(function* ({ call: { id, name }, params }) {
      if (deny.has(name)) return refused("--deny forbids it")
      const scope = scopeOf(name, params)
      if (yes || allow.has(name) || always.has(scope.key)) return approved
      if (readOnly.has(name)) return undefined
      if (!ask) return refused("it needs approval, and there is nobody to ask")
      yield* shown(id)
      const answer = yield* answerTo(yield* Preview.of(name, params, root), scope)
      if (answer === "always") always.add(scope.key)
      return answer === "no" ? refused("the user said no") : approved
    })
  )
}

/** What "always" is said of. */
interface Scope {
  /** Equal for calls that are allowed together. */
  readonly key: string
  /** In words. */
  readonly words: string
}

/** Shell: the very command. Write and edit: the tool and the path, letter by letter. All else: all params. */
const scopeOf = (name: string, params: unknown): Scope => {
  const text = (param: string): string | undefined =>
    Predicate.hasProperty(params, param) && typeof params[param] === "string" ? params[param] : undefined
  const scope = (words: string, of: unknown): Scope => ({ key: JSON.stringify([name, of]), words })
  const command = name === "shell" ? text("command") : undefined
  if (command !== undefined) return scope("for this command", command)
  const path = name === "write" || name === "edit" ? text("path") : undefined
  return path === undefined
    ? scope(`for ${Inert.name(name)} with these params`, { params })
    : scope(`${name} this path`, path)
}

/** Shows what would happen, and waits for an answer. Anything but yes, always or view, an end of input too, is no. */
const answerTo = Effect.fnUntraced(function* (preview: Preview.Preview, scope: Scope) {
  const { err, paint } = yield* Screen
  const keyboard = yield* Keyboard
  const lines = Preview.brief(preview).map((line) => `  ${line}`)
  yield* err([paint.bold(preview.title), ...lines, ""].join("\n"))
  const view = Preview.isCut(preview) ? ", [v]iew all" : ""
  while (true) {
    // What was typed before the question was there is no answer to it.
    yield* keyboard.forget
    yield* err(`Allow this? [y]es, [N]o, [a]lways ${scope.words}${view}: `)
    const typed = yield* Effect.onInterrupt(keyboard.line, () => err("\n"))
    if (typed === undefined) yield* err("\n")
    const answer = meaningOf(typed?.trim().toLowerCase() ?? "")
    if (answer !== "view") return answer
    yield* showAll(preview)
  }
})

/** A screen at a time. */
const showAll = Effect.fnUntraced(function* ({ lines, title }: Preview.Preview) {
  const { err, paint, rows } = yield* Screen
  const keyboard = yield* Keyboard
  yield* err(`${paint.bold(title)}\n`)
  // Its last line is that of the question.
  const page = Math.max(rows() - 1, 1)
  for (let from = 0; from < lines.length; from += page) {
    const shown = lines.slice(from, from + page).map((line) => `  ${Inert.exact(line)}\n`)
    yield* err(shown.join(""))
    const left = lines.length - from - page
    if (left <= 0) return
    yield* keyboard.forget
    yield* err(
      `${left} more ${left === 1 ? "line" : "lines"}. [Enter] goes on, [q] goes back to the question: `
    )
    const typed = yield* Effect.onInterrupt(keyboard.line, () => err("\n"))
    if (typed === undefined || typed.trim() !== "") return
  }
})

const answers: Readonly<Record<string, "yes" | "always" | "view">> = {
  y: "yes",
  yes: "yes",
  a: "always",
  always: "always",
  v: "view",
  view: "view"
}

const meaningOf = (word: string): "yes" | "no" | "always" | "view" =>
  Object.hasOwn(answers, word) ? (answers[word] ?? "no") : "no"
