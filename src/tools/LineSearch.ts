/**
 * Searches lines for a pattern, in time linear to the line for every pattern. It runs an automaton and creates
 * its states on demand (Thompson 1968). A backtracking engine needs years for `(a+)+$` on a line of 60
 * characters, and cannot be interrupted.
 */
import * as Result from "effect/Result"
import * as Paced from "./Paced.ts"
import * as Pattern from "./Pattern.ts"

/** The end of the first match in a line (the earliest end, in code units), or -1. */
export type Search = (line: string) => Paced.Work<number>

/** Makes a search for a regular expression. Fails with a description of the syntax error. */
export const regex = (
  source: string,
  options?: { readonly ignoreCase?: boolean }
): Result.Result<Search, string> => {
  // Most searches are for plain words, which `indexOf` finds much faster.
  if (/^[\w\s"'=:;,<>/@#%&!~`-]+$/.test(source)) return Result.succeed(literal(source, options))
  return Result.flatMap(Pattern.parse(source, options), (node) => {
    // 5,000 steps are far above handwritten patterns. Nested counted repeats exceed them soon.
    const size = sizeOf(node)
    return size > 5_000
      ? Result.fail("the pattern repeats too much")
      : Result.succeed(automaton(compile(node)))
  })
}

/** Makes a search for a literal text. */
export const literal = (text: string, options?: { readonly ignoreCase?: boolean }): Search => {
  const ignoreCase = options?.ignoreCase === true
  const wanted = ignoreCase ? text.toLowerCase() : text
  return function* (line) {
    const at = yield* Paced.indexOf(ignoreCase ? yield* Paced.lowered(line) : line, wanted)
    return at === -1 ? -1 : at + wanted.length
  }
}

type Step =
  | { readonly _tag: "Char"; readonly accepts: (char: string) => boolean }
  | { readonly _tag: "Assert"; readonly at: "start" | "end" | "word" | "notWord" }
  | { readonly _tag: "Split"; readonly targets: Array<number> }
  | { readonly _tag: "Match" }

const sizeOf = (node: Pattern.Node): number => {
  switch (node._tag) {
    case "Char":
    case "Assert":
      return 1
    case "Sequence":
    case "Choice":
      return node.items.reduce((sum, item) => sum + sizeOf(item) + 2, 1)
    case "Repeat": {
      const copies = node.max === Infinity ? node.min + 1 : node.max
      return copies * (sizeOf(node.item) + 2) + 1
    }
  }
}

const compile = (node: Pattern.Node): ReadonlyArray<Step> => {
  const steps: Array<Step> = []
  emit(steps, node)
  steps.push({ _tag: "Match" })
  return steps
}

/** Each step continues with the next one, except `Split`, which continues with its targets. */
const emit = (steps: Array<Step>, node: Pattern.Node): void => {
  switch (node._tag) {
    case "Char":
    case "Assert":
      steps.push(node)
      return
    case "Sequence":
      for (const item of node.items) emit(steps, item)
      return
    case "Choice":
      return emitChoice(steps, node.items)
    case "Repeat":
      return emitRepeat(steps, node)
  }
}

const emitChoice = (steps: Array<Step>, items: ReadonlyArray<Pattern.Node>): void => {
  const starts: Array<number> = []
  const end: Array<number> = []
  steps.push({ _tag: "Split", targets: starts })
  for (const item of items) {
    starts.push(steps.length)
    emit(steps, item)
    steps.push({ _tag: "Split", targets: end })
  }
  end.push(steps.length)
}

const emitRepeat = (
  steps: Array<Step>,
  { item, max, min }: Extract<Pattern.Node, { readonly _tag: "Repeat" }>
): void => {
  for (let count = 0; count < min; count++) emit(steps, item)
  const optional = max === Infinity ? 1 : max - min
  const loop = steps.length
  const splits = Array.from({ length: optional }, () => {
    const targets = [steps.length + 1]
    steps.push({ _tag: "Split", targets })
    emit(steps, item)
    return targets
  })
  if (max === Infinity) steps.push({ _tag: "Split", targets: [loop] })
  for (const targets of splits) targets.push(steps.length)
}

type Before = "start" | "word" | "other"

/** The steps that are active after a character, and the kind of that character, which assertions need. */
interface State {
  readonly steps: ReadonlyArray<number>
  readonly before: Before
  /** Transitions by code point, 0 for the end of the line. ASCII, the most common case, has an array. */
  readonly ascii: Array<State | "match" | undefined>
  readonly others: Map<number, State | "match">
}

// A NUL in a line has the same code as its end, so `$` matches before it and no character matches it. The
// search continues after it. Text rarely contains NUL.
const lineEnd = 0

/** Characters between two yields, if their transitions exist. */
const stride = 10_000

/**
 * Maximum steps in all states together. Above it the search drops its states, which bounds memory and costs
 * time.
 */
const maxHeld = 1_000_000

const automaton = (steps: ReadonlyArray<Step>): Search => {
  const states = new Map<string, State>()
  let held = 0
  // Counts across lines, because most lines are short.
  let read = 0

  const stateOf = (reached: ReadonlyArray<number>, before: Before): State => {
    const key = `${before} ${reached.join(" ")}`
    const known = states.get(key)
    if (known !== undefined) return known
    const state: State = { steps: reached, before, ascii: [], others: new Map() }
    states.set(key, state)
    return state
  }
  const advance = (state: State, code: number): State | "match" => {
    const reached = closure(steps, state, code)
    // Each new state costs about ten times a known transition.
    read += 10 * reached.steps.size
    if (reached.matched) return "match"
    const char = code === lineEnd ? "" : String.fromCodePoint(code)
    const after = new Set([0])
    for (const at of reached.steps) {
      const step = steps[at]
      if (code !== lineEnd && step?._tag === "Char" && step.accepts(char)) after.add(at + 1)
    }
    return stateOf(
      Array.from(after).toSorted((self, that) => self - that),
      isWord(code) ? "word" : "other"
    )
  }
  const transition = (state: State, code: number): State | "match" => {
    held += state.steps.length + 50
    if (held > maxHeld) {
      held = 0
      states.clear()
    }
    const next = advance(state, code)
    if (code < 128) state.ascii[code] = next
    else state.others.set(code, next)
    return next
  }
  const follow = (state: State, code: number): State | "match" =>
    (code < 128 ? state.ascii[code] : state.others.get(code)) ?? transition(state, code)

  return function* (line) {
    let state = stateOf([0], "start")
    for (let index = 0; index < line.length; ) {
      if (++read > stride) {
        read = 0
        yield
      }
      const code = line.codePointAt(index) ?? lineEnd
      const next = follow(state, code)
      if (next === "match") return index
      state = next
      index += code > 0xffff ? 2 : 1
    }
    return follow(state, lineEnd) === "match" ? line.length : -1
  }
}

/** The steps that wait for a character, before the search reads `code`. */
const closure = (
  program: ReadonlyArray<Step>,
  state: State,
  code: number
): { readonly steps: ReadonlySet<number>; readonly matched: boolean } => {
  const seen = new Set<number>()
  const pending = Array.from(state.steps)
  for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
    const step = program[at]
    if (step === undefined || seen.has(at)) continue
    seen.add(at)
    if (step._tag === "Match") return { steps: seen, matched: true }
    if (step._tag === "Split") pending.push(...step.targets)
    if (step._tag === "Assert" && holds(step.at, state.before, code)) pending.push(at + 1)
  }
  return { steps: seen, matched: false }
}

const holds = (at: "start" | "end" | "word" | "notWord", before: Before, code: number): boolean => {
  switch (at) {
    case "start":
      return before === "start"
    case "end":
      return code === lineEnd
    default:
      return ((before === "word") !== isWord(code)) === (at === "word")
  }
}

const isWord = (code: number): boolean =>
  (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || code === 95 || (code >= 97 && code <= 122)
