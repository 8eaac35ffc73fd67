import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { citationsIn, faultsOf, inventory, pageWith, rowsOf, testsOf } from "../../scripts/inventory.ts"

const text = `row\tstate\tsystems\tfeature\tours
1\tdone\tkarl pi\tRoles\t\`Message\`
2\topen\toneringai\tParts\t\`Message\`
3\tout\tkarl\tStacks\tconfiguration of an application
`
const rows = rowsOf(text)
const faults = (source: string) => faultsOf(rows, citationsIn("a.test.ts", source))
const missing = "row 1 is done, and no test cites it: Roles"

describe("the inventory", () => {
  it("has a test for each row that is done, and names the rows of each test", () => {
    assert.deepStrictEqual(inventory().faults, [])
  })

  it("is on the page of docs: npm run inventory", () => {
    const page = readFileSync(join(import.meta.dirname, "../../docs/migrating.md"), "utf8")
    assert.strictEqual(page, pageWith(page, inventory().rows))
  })
})

describe("a citation", () => {
  it("stands at the end of the title of a test or of a group of tests, in any of its forms", () => {
    const source = [
      `it("a (row 1)", () => {})`,
      `it.effect(\n  'b (rows 1, 2)', () => x)`,
      "it.live.each(list.filter((one) => one))(`c ${x} (row 1)`, () => x)",
      `it("has (row 1) elsewhere", () => {})`,
      `describe("d (row 2)", () => {})`,
      `const title = "e (row 1)"`
    ].join("\n")
    const found = citationsIn("a.test.ts", source)
    assert.deepStrictEqual(
      found.map(({ line, modifiers, rows }) => [line, modifiers, rows]),
      [
        [1, "", [1]],
        [2, ".effect", [1, 2]],
        [4, ".live.each", [1]],
        [6, "", [2]],
        [7, undefined, [1]]
      ]
    )
    const [row] = rows
    assert.strictEqual(row === undefined ? 0 : testsOf(row, found), 3)
  })

  it("fails the inventory where no test is left of a row that is done", () => {
    assert.deepStrictEqual(faults(""), [missing])
    assert.deepStrictEqual(faults(`it("a (row 1)", () => {})`), [])
  })

  it("fails the inventory where its row is open, out of scope, or does not exist", () => {
    assert.deepStrictEqual(faults(`it("a (rows 1, 2, 3, 4)", () => {})`), [
      "a.test.ts:1 cites row 2, which is open: if it is done, write so in rows.tsv",
      "a.test.ts:1 cites row 3, which is out: if it is done, write so in rows.tsv",
      "a.test.ts:1 cites row 4, which does not exist"
    ])
  })

  it("fails the inventory where its test does not run", () => {
    const outside = "a.test.ts:1 cites rows outside of the title of a test that runs"
    assert.deepStrictEqual(faults(`it.skip("a (row 1)", () => {})`), [missing, outside])
    assert.deepStrictEqual(faults(`const title = "a (row 1)"`), [missing, outside])
  })
})

describe("rows.tsv", () => {
  it("has the rows in order, each with a state and names", () => {
    assert.throws(() => rowsOf(text.replace("open", "opened")), /rows\.tsv: 2/)
    assert.throws(() => rowsOf(text.replace("\tParts", "\t")), /rows\.tsv: 2/)
    const [first, , third] = rows
    const found = faultsOf(
      [first, third].flatMap((row) => row ?? []),
      citationsIn("a.test.ts", `it("a (row 1)", f)`)
    )
    assert.deepStrictEqual(found, ["rows.tsv: row 3 stands in the place of row 2"])
  })
})
