import { assert, describe, it } from "@effect/vitest"
import { undocumented } from "./bounds.ts"
import { type Declared, exportsOf, headOf, modules } from "./docstrings.ts"

/** Groups of declarations, as the docs of Effect name them. */
const categories = [
  "accessors",
  "combinators",
  "constants",
  "constructors",
  "converting",
  "decoding",
  "encoding",
  "errors",
  "filtering",
  "folding",
  "formatting",
  "getters",
  "guards",
  "hooks",
  "layers",
  "models",
  "options",
  "predicates",
  "running",
  "schemas",
  "services",
  "tools",
  "transforming",
  "utility types",
  "validation"
]

/** Categories whose declarations need an example even where they are no functions. */
const withExample = ["constructors", "layers", "services"]

/** One sentence that ends with a full stop. */
const isSentence = (text: string): boolean => /^[A-Z`{]/.test(text) && /^[^.]*(\.\S[^.]*)*\.$/s.test(text)

const summaryOf = (doc: string): string =>
  doc
    .split(/\n\s*\n|\n@/)[0]
    ?.replace(/\s+/g, " ")
    .trim() ?? ""

/** Words that hide who does something, or that say it in a picture. */
const unclear = /\b(whoever|nobody|somebody)\b|(^|[.:] )(What|Who|The same)\b/

const tagOf = (doc: string, tag: string): string | undefined =>
  new RegExp(`^@${tag} (.*)$`, "m").exec(doc)?.[1]

const summaryFaults = (doc: string): ReadonlyArray<string> =>
  isSentence(summaryOf(doc)) ? [] : ["does not begin with a paragraph of one sentence"]

const textFaults = (doc: string): ReadonlyArray<string> => [
  ...(/^[A-Z`{][^]*\.$/.test(summaryOf(doc)) ? [] : ["does not begin with a sentence"]),
  ...(unclear.test(doc.replace(/```[^]*?```/g, "")) ? [`says "${unclear.exec(doc)?.[0].trim()}"`] : []),
  ...(/\n@example/.test(doc) ? ["has @example instead of **Example** (Title)"] : [])
]

const sinceFaults = (doc: string): ReadonlyArray<string> =>
  /^0\.[12]\.0$/.test(tagOf(doc, "since") ?? "") ? [] : ["has no @since 0.1.0 or 0.2.0"]

const declaredFaults = ({ doc, isFunction, members }: Declared): ReadonlyArray<string> => {
  if (doc === undefined) return ["has no docstring"]
  const category = tagOf(doc, "category") ?? ""
  const needsExample = isFunction || withExample.includes(category)
  return [
    ...summaryFaults(doc),
    ...textFaults(doc),
    ...sinceFaults(doc),
    ...(categories.includes(category) ? [] : [`has no @category of the known ones: "${category}"`]),
    ...(!needsExample || /^\*\*Example\*\* \(.+\)\n\n```ts\n/m.test(doc)
      ? []
      : ["has no **Example** (Title)"]),
    ...members.flatMap(memberFaults)
  ]
}

const memberFaults = ({ doc, name }: { readonly name: string; readonly doc: string | undefined }) =>
  doc === undefined
    ? [`has a member ${name} without a sentence`]
    : textFaults(doc).map((fault) => `has a member ${name} that ${fault}`)

const headFaults = (file: string): ReadonlyArray<string> => {
  const head = headOf(file)
  return head === undefined
    ? ["has no docstring"]
    : [...summaryFaults(head), ...textFaults(head), ...sinceFaults(head)]
}

const faultsOf = (file: string): ReadonlyArray<string> => {
  const exported = exportsOf(file)
  const names = new Set(exported.map(({ name }) => name))
  // A case of a union that is an interface of its own has its sentence there.
  const own = (declared: Declared) => ({
    ...declared,
    members: declared.members.filter(({ name }) => !(/^[A-Z]/.test(name) && names.has(name)))
  })
  return [
    ...headFaults(file).map((fault) => `${file} ${fault}`),
    ...exported.flatMap((declared) =>
      declaredFaults(own(declared)).map((fault) => `${declared.where} ${declared.name} ${fault}`)
    )
  ]
}

describe("docstrings", () => {
  it("finds modules and their exports", () => {
    assert.isAbove(modules.length, 50)
    assert.isAbove(modules.flatMap(exportsOf).length, 300)
  })

  it.each(modules.filter((file) => !undocumented.includes(file)))("of %s are complete", (file) => {
    assert.deepStrictEqual(faultsOf(file), [])
  })

  it("are incomplete where the list says so", () => {
    assert.deepStrictEqual(
      undocumented.filter((file) => !modules.includes(file) || faultsOf(file).length === 0),
      []
    )
  })
})
