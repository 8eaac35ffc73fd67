import { assert, describe, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** Modules of src whose language is checked. */
const checked = [
  "{Message,Usage,ModelEvent,ProviderError,RunOptions,AgentEvent,RunReport,Run}.ts",
  "{Transcript,Provider,ContextManager}.ts",
  "{Approval,Hook,HookManager}.ts",
  "{Agent,Loop}.ts",
  "internal/*.ts",
  "index.ts",
  "{ai,ai-sdk,ai-sdk-ui,ag-ui,api,artifacts,cli,compat,guardrails,http,media,node,promise,providers,proxy}/**/*.ts",
  "{resilience,runs,server,sessions,skills,sql,testing,tool-search,tools,ui}/**/*.ts"
]

const root = join(import.meta.dirname, "../src")
const files = globSync(checked, { cwd: root })

const comments = /\/\*\*[^]*?\*\/|(?:^[ \t]*\/\/.*\n)+/gm
const example = /```[^]*?```/g

/** A comment as running text: one line for each paragraph, without examples and code. */
const proseOf = (comment: string): string =>
  comment
    .replace(example, "")
    .replace(/^[ \t]*(?:\/\*\*|\*\/|\*|\/\/) ?|\*\/$/gm, "")
    .replace(/`[^`]*`/g, "CODE")
    .replace(/\n(?!\n|[-*@])/g, " ")

/** Subjects that do not name an actor, at the start of a sentence or a clause. */
const subjects = /(?:^|[.;:] )(?:what|whatever|whoever|who|nobody|somebody|the same)\b[^.;:]{0,40}/gim
/** Words that hide the actor, and metaphors. */
const words =
  /\b(?:whoever|nobody|somebody|telling|tells?|told|heard|hears?|go on|goes on|went on|says? so|said|opinion|riddle|(?:is|are|was|were|be) asked|asks? for|asked for)\b/gi
/** Names that do not say what a value is. */
const names = /\b(?:told|said|heard|goOn|laid)\b/g

const found = (pattern: RegExp, textsOf: (source: string) => ReadonlyArray<string>): ReadonlyArray<string> =>
  files.flatMap((file) =>
    textsOf(readFileSync(join(root, file), "utf8")).flatMap((text) =>
      Array.from(text.matchAll(pattern), ([match]) => `${file}: ${match.trim()}`)
    )
  )

/** A page as running text, without code. */
const page = (file: string): string =>
  readFileSync(join(root, "..", file), "utf8")
    .replace(example, "")
    .replace(/`[^`]*`/g, "CODE")
    .replace(/\n(?!\n|[-|#] ?)/g, " ")
    .replace(/^(?:[-|#]+ )/gm, "")

const commentsOf = (source: string) => Array.from(source.matchAll(comments), ([comment]) => proseOf(comment))
/** Names, without texts. */
const codeOf = (source: string) => [source.replace(comments, "").replaceAll(/"[^"\n]*"/g, '""')]

describe("comments in src", () => {
  it("name the actor as the subject", () => {
    assert.deepStrictEqual(found(subjects, commentsOf), [])
  })

  it("use no words that hide the actor", () => {
    assert.deepStrictEqual(found(words, commentsOf), [])
  })
})

describe("README.md, the pages of docs, and CHANGELOG.md from 0.2.0 on", () => {
  const pages = [
    page("README.md"),
    ...globSync("docs/*.md", { cwd: join(root, "..") }).map(page),
    page("CHANGELOG.md").split("\n## 0.1.0")[0] ?? ""
  ]

  it("name the actor, and use no words that hide it", () => {
    const faults = pages.flatMap((text) =>
      [subjects, words].flatMap((pattern) => Array.from(text.matchAll(pattern), ([match]) => match.trim()))
    )
    assert.deepStrictEqual(faults, [])
  })
})

describe("names in src", () => {
  it("say what a value is", () => {
    assert.deepStrictEqual(found(names, codeOf), [])
  })
})
