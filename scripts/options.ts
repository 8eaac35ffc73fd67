// Writes the tables of options in `docs/options.md` from the docstrings of the source. `npm run docs` runs it, and
// `test/readme.test.ts` compares.
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript-5.9"

const root = join(import.meta.dirname, "..")
const page = join(root, "docs/options.md")

type Declaration = readonly [file: string, name: string]

/** The declarations whose members are options, under the heading of their table. */
const tables: ReadonlyArray<readonly [heading: string, declarations: ReadonlyArray<Declaration>]> = [
  [
    "Agent.make",
    [
      ["src/RunOptions.ts", "RunOptions"],
      ["src/internal/options.ts", "AgentOptions"],
      ["src/internal/output.ts", "OutputOptions"],
      ["src/internal/options.ts", "RetryOptions"]
    ]
  ],
  ["limits", [["src/RunOptions.ts", "Limits"]]],
  ["modelOptions", [["src/RunOptions.ts", "ModelOptions"]]]
]

/** The options that come first in their table, since readers look for them first. */
const first = ["system", "model", "tools", "hooks", "session"]

interface Option {
  readonly name: string
  readonly meaning: string
  readonly type: string
  readonly value: string
}

/** The text of the page with the tables as they are now. */
export const pageWith = (text: string): string =>
  tables.reduce((before, [heading, declarations]) => {
    const marker = `<!-- options of ${heading} -->`
    const from = before.indexOf(marker)
    const to = before.indexOf("<!-- end -->", from)
    if (from === -1 || to === -1) throw new Error(`docs/options.md has no ${marker}`)
    const table = tableOf(declarations.flatMap(([file, name]) => optionsIn(file, name)))
    const ignored = `<!-- prettier-ignore-start -->\n\n${table}\n\n<!-- prettier-ignore-end -->`
    return `${before.slice(0, from)}${marker}\n${ignored}\n${before.slice(to)}`
  }, text)

const tableOf = (options: ReadonlyArray<Option>): string => {
  const rank = ({ name }: Option) => (first.includes(name) ? first.indexOf(name) : first.length)
  const rows = options
    .toSorted((left, right) => rank(left) - rank(right))
    .map(({ meaning, name, type, value }) => `| \`${name}\` | ${meaning} | ${type} | ${value} |`)
  return ["| option | meaning | type | default |", "| --- | --- | --- | --- |", ...rows].join("\n")
}

/** The options that a declaration has: an object type, or a struct of `Schema`. */
const optionsIn = (file: string, name: string): ReadonlyArray<Option> => {
  const text = readFileSync(join(root, file), "utf8")
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const members: Array<ts.PropertySignature | ts.PropertyAssignment> = []
  const visit = (node: ts.Node): void => {
    if (ts.isPropertySignature(node) || ts.isPropertyAssignment(node)) members.push(node)
    else ts.forEachChild(node, visit)
  }
  for (const statement of source.statements) {
    if (ts.isVariableStatement(statement)) {
      const declared = statement.declarationList.declarations.find((each) => each.name.getText() === name)
      if (declared !== undefined) visit(declared)
    } else if (
      (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) &&
      statement.name.text === name &&
      members.length === 0
    )
      visit(statement)
  }
  return members.map(optionOf)
}

const optionOf = (member: ts.PropertySignature | ts.PropertyAssignment): Option => {
  const [paragraph = ""] = (ts.getJSDocCommentsAndTags(member).filter(ts.isJSDoc).at(-1)?.getText() ?? "")
    .replace(/^\/\*\*|\*\/$/g, "")
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, ""))
    .join("\n")
    .trim()
    .split("\n\n")
  const text = paragraph.replaceAll("\n", " ").replaceAll("|", "\\|")
  const [, meaning = text, value = "required", rest = ""] =
    /^(.*?)\s*Default:? (.*?)(?:\.(?:$| )|$)(.*)$/.exec(text) ?? []
  const written = ts.isPropertySignature(member) ? member.type : member.initializer
  return {
    name: member.name.getText(),
    meaning: `${meaning} ${rest}`.trim(),
    type: typeOf(written?.getText() ?? "", member.getSourceFile().text),
    value
  }
}

const names: ReadonlyArray<readonly [type: RegExp, name: string]> = [
  [/^(Schema\.)?(String|string)\b/, "text"],
  [/^(Schema\.)?(Boolean|boolean)\b/, "boolean"],
  [/^(Schema\.)?(Int|Finite|Count|Amount|whole\(|number)/, "number"],
  [/^DurationInput|^Duration\./, "duration"],
  [/^Schema\.Array\(Schema\.String\)/, "texts"],
  [/^(Schema\.Array|ReadonlyArray|T$|H$)/, "list"],
  [/^QueueMode/, '`"one-at-a-time"`, `"all"`'],
  [/^Schedule/, "`Schedule`"]
]

/** What a value is, in words. `source` has the constants that a type may name. */
const typeOf = (member: string, source: string): string => {
  const written = member.replace(/^Schema\.optionalKey\(\s*([^]*?)\s*\)$/, "$1")
  const named = /^\w+$/.test(written)
    ? new RegExp(`^export const ${written} = (.*)$`, "m").exec(source)?.[1]
    : undefined
  const type = named ?? written
  const literals = /^Schema\.Literals\(\[([^\]]*)\]\)$/.exec(type)?.[1]
  if (literals !== undefined)
    return literals
      .split(", ")
      .map((literal) => `\`${literal}\``)
      .join(", ")
  return names.find(([pattern]) => pattern.test(type))?.[1] ?? "object"
}

if (process.argv[1] === import.meta.filename) writeFileSync(page, pageWith(readFileSync(page, "utf8")))
