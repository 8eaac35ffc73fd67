import { assert, describe, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../src")
const lines = globSync("**/*.ts", { cwd: root }).flatMap((file) =>
  readFileSync(join(root, file), "utf8")
    .split("\n")
    .map((text, index) => ({ file, text, where: `${file}:${index + 1}` }))
    .filter(({ text }) => !/^\s*(\*|\/\/|\/\*)/.test(text))
)

/** Type assertions that are there on purpose: file, text, and why nothing better is known. */
const allowed: ReadonlyArray<readonly [file: string, text: string, why: string]> = []

/** Files that may say `any`, and only in these positions: variance, inference, erased registrations. */
const anyPosition =
  /(Schema\.Codec<[^>]*\bany\b|StandardSchemaV1<any|StandardJSONSchemaV1<any|Tool<[^=]*\bany\b|HookOf<[^=]*\bany\b|Hook<E = any|Guardrail<R = any|ParamsReader<any>|ParamsSchema<any>|Effect\.Effect<(any|\w+, any)|Exit\.Exit<any|Layer\.Layer<[^=]*\bany\b|Context\.Service<any|input: any\))/

describe("types in src", () => {
  it("assert nothing the compiler cannot see, but for the list", () => {
    const found = lines.filter(
      ({ file, text }) =>
        /\bas (?!const\b)[A-Z{([a-z]/.test(text) &&
        !/^\s*(import|export) /.test(text) &&
        !/["`'].*\bas\b.*["`']/.test(text) &&
        !/\* as /.test(text) &&
        // A name given in an import or an export of several lines.
        !/^\s*(type )?\w+ as \w+,?$/.test(text) &&
        !allowed.some(([name, part]) => name === file && text.includes(part))
    )
    assert.deepStrictEqual(
      found.map(({ text, where }) => `${where} ${text.trim()}`),
      []
    )
  })

  it("say `any` only in variance positions", () => {
    const found = lines.filter(({ text }) => /[<(,:|=] ?any\b/.test(text) && !anyPosition.test(text))
    assert.deepStrictEqual(
      found.map(({ text, where }) => `${where} ${text.trim()}`),
      []
    )
  })

  it("neither throw, nor run effects, nor silence a check, in library code", () => {
    const found = lines.filter(
      ({ file, text }) =>
        (/\bthrow new\b|Effect\.runSync|@ts-(ignore|expect-error)|(oxlint|eslint)-disable|as unknown as/.test(
          text
        ) ||
          /\bconsole\.(log|error|warn)/.test(text)) &&
        !file.startsWith("cli/") &&
        !file.startsWith("promise/")
    )
    assert.deepStrictEqual(
      found.map(({ text, where }) => `${where} ${text.trim()}`),
      []
    )
  })
})
